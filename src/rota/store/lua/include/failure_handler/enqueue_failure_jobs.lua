-- Enqueues a failure job for each dead run whose task has a failure handler, in the failure queue, in the same step.
-- Runs of a failure queue have none. Called after the run records are written and before
-- `index_retain_and_announce_finished_runs`, which may remove them. Returns how many workers of this queue are still
-- to be woken.
-- @include add_history_entry
-- @include add_run_to_task_index
-- @include assign_task_numbers
-- @include format_integer
-- @include format_new_job_record
-- @include format_run_number
-- @include gather_and_write_counts
-- @include increment_counter
-- @include parse_and_format_run_record
-- @include pending_score
-- @include queue_key_prefix
-- @include read_job_record
-- @include split_and_join_job_record
-- @include wake_idle_workers
-- @include write_new_jobs

-- Describes the failed job for its handler, as JSON. A damaged number counts as 0: an error here would fail every
-- claim of the queue.
local function describe_failed_job(id, run, line, task, options, enqueued_at)
  local r = parse_run_record(line)
  local function whole(text)
    local number = tonumber(text) or 0
    return number < 2 ^ 53 and number or 0
  end
  return cjson.encode({
    ref = queue .. ":" .. id .. "@" .. run, task = task, options = options, enqueued_at = whole(enqueued_at),
    attempt = whole(r.attempt), failures = whole(r.failures), stalls = whole(r.stalls), snoozes = whole(r.snoozes),
    handbacks = whole(r.handbacks), worker = r.worker, claimed_at = whole(r.claimed_at), ended_at = whole(r.ended_at),
    reason = r.reason,
  })
end

local function enqueue_failure_jobs(dead, now)
  if #dead == 0 or string.sub(queue, -5) == "-fail" or redis.call("EXISTS", K.failure_handlers) == 0 then return 0 end
  local made = {}
  -- The keys of the failure queue: passed in KEYS, they would travel with every claim.
  local fail = queue_key_prefix .. "fail:"
  local failure_counters, batch = open_counters(fail), new_job_batch(fail .. "jobs", fail .. "pending")
  for _, run in ipairs(dead) do
    local failed_job = read_job_record(run) or ""
    local head, asked, task, arguments_at = split_job_record(failed_job)
    local name, enqueued_at = string.match(head or "", "^(%S+) (%d+)$")
    local options = name and redis.call("HGET", K.failure_handlers, task)
    if options then
      local line = redis.call("HGET", K.runs, run)
      local id = string.match(name, "^=(.+)$") or run .. "-" .. name
      local new = format_run_number(increment_counter(fail .. "meta", "run", 1))
      -- Eight characters that cannot be guessed: the record has the claim token, which is random.
      local suffix = string.sub(redis.sha1hex(queue .. run .. line), 1, 8)
      -- Texts are concatenated, so that the JSON of the user is not re-encoded.
      local description = describe_failed_job(id, run, line, task, asked, enqueued_at)
      local err, arguments = redis.call("HGET", K.errors, run) or "{}", string.sub(failed_job, arguments_at)
      local rest = "[" .. err .. "," .. description .. "," .. arguments .. "]"
      local parts = split_options(options)
      local ok, general = pcall(cjson.decode, parts[C.OPTION_GENERAL])
      local priority = ok and type(general) == "table" and tonumber(general.priority) or 0
      local asked_for = options .. "\n" .. task .. ".on_failure\n"
      local record = format_new_job_record(suffix, format_integer(now), asked_for .. rest)
      add_job(batch, new, record, nil, "", nil)
      add_due(batch, new, format_integer(pending_score(priority, now)), "")
      made[#made + 1] = new
      count(task .. ".on_failure", "enqueued", 1, failure_counters)
      add_run_to_task_index(new, task .. ".on_failure", failure_counters)
      local terms = parts[C.OPTION_TERMS]
      if terms ~= "" then redis.call("HSET", fail .. "terms", new, terms) end
      for term in string.gmatch(terms, "%S+") do redis.call("ZADD", fail .. "term:" .. term, 0, new) end
      add_history_entry(run, { at = now, verb = "failure_job", note = queue .. "-fail:" .. new .. "-" .. suffix })
    end
  end
  if #made == 0 then return 0 end
  write_counters(now, failure_counters)
  write_new_jobs(batch)
  redis.call("XADD", fail .. "events", "MAXLEN", "~", C.EVENTS_KEPT, "*", "enqueue", table.concat(made, " "))
  -- Few workers serve only the failure queue; those of this queue claim from it when it is due.
  local wanted = math.min(#made, 8)
  return wanted - wake_idle(fail .. "idle", queue .. "-fail", wanted)
end
