-- enqueue: (none) -> scheduled | blocked | pending
--
-- Makes jobs, each with its record and its entry in an index, all in one step. Where an id has an unfinished run, the
-- caller decides: leave it, or update it. A run that is processing is not updated: one follow-up waits for its end.
-- Sent again with the same call number, it makes nothing and returns the first reply. A job with an idempotency token
-- is made once: for a day the token refers to that run, whatever has become of it.
--
-- KEYS meta       hash    counters run, fence, totals; is_paused, server_seen, grace_until
-- KEYS jobs       hash    run -> job record: head, options, task, arguments
-- KEYS pending    zset    run -> score: priority, then the time it became due
-- KEYS scheduled  zset    run -> time it falls due, and its priority
-- KEYS blocked    zset    run -> its pending score once released
-- KEYS once       prefix  `once:…`: idempotency token -> the run that it made
-- ARGV[1] queue
-- ARGV[2] inbox      prefix of the channels
-- ARGV[3] call_number
-- ARGV[4…] two for each job: its settings, and the rest of its record (options, task, arguments). The settings are a
--          random suffix of eight characters for a job that is due now and has no others; else, separated by tabs:
--          suffix, priority, due moment, expiry moment or "", and "" or flags=chosen id. Flags: "-" leaves a run of
--          that id alone, else see `merge_new_job_into_record`; "!" and an idempotency token may follow
--
-- Returns lines: the number before the first run made, a space, and the time, ms; then for each job that made no run
-- its index, and "in_use run", "updated run", "again run" (its token was known), or why not: "task run", "after run",
-- "blob run" (its blobs have expired), "untied -"

-- @include add_follow_up_to_processing_run
-- @include add_new_runs_to_task_index
-- @include emit_enqueue_event
-- @include emit_event
-- @include format_integer
-- @include format_new_job_record
-- @include format_run_number
-- @include gather_and_write_counts
-- @include last_run_number
-- @include now_ms
-- @include parse_time_argument
-- @include pending_score
-- @include replay_reply_of_numbered_call
-- @include scheduled_score
-- @include split_and_join_job_record
-- @include wake_idle_workers
-- @include write_new_jobs
-- @rare add_new_runs_to_search_terms
-- @rare can_take_blobs
-- @rare push_job_to_idle_worker
-- @rare resolve_job_with_unfinished_id
-- @rare take_blobs

local before = recall_reply("enqueue", call_number)
if before then return before end

local FIRST_JOB, WORDS_PER_JOB, SUFFIX_LENGTH = 4, 2, 8
local now = now_ms()
local first = last_run_number()
local number, freed, first_scheduled = first, 0, nil
local batch, now_text = new_job_batch(K.jobs, K.pending), format_integer(now)
local made, updated, reply = {}, {}, { format_integer(first) .. " " .. now_text }
local tasks_made, amount_of, termed, terms_of, is_new = {}, {}, {}, {}, {}

-- Options, by their numbers, and task of the latest record. Most records have the same lines as the one before.
local lines, options, task

local function parse_options(rest)
  if lines and string.sub(rest, 1, #lines) == lines then return end
  local text
  lines, text, task = string.match(rest, "^(([^\n]*)\n([^\n]*)\n)")
  options = text ~= "" and split_options(text) or {}
end

-- Returns suffix, priority, due moment, expiry moment, and flags, token and chosen id as one text.
local function parse_settings(settings)
  if #settings == SUFFIX_LENGTH then return settings, 0, "", "", "" end
  return string.match(settings, "^(%w*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t(.*)$")
end

-- Returns the unfinished run of a chosen id, if there is one, and what became of that run; nil for a follow-up.
local function resolve_id(id, flags, token, priority, due, expiry, rest)
  if is_new[id] then
    -- The run must be whole before it is updated.
    freed, is_new = freed + write_new_jobs(batch), {}
    if #termed > 0 then add_new_runs_to_search_terms(termed, terms_of) end
    termed, terms_of = {}, {}
  end
  local holder, outcome, became_pending =
    resolve_job_with_unfinished_id(id, flags, token, priority, due, expiry, rest, now)
  freed = freed + became_pending
  if outcome == "updated" then updated[#updated + 1] = holder end
  return holder, outcome
end

-- The latest score, and what it was made of: most jobs of a call have the same.
local score, scored_priority, scored_start

-- Adds a new run to the batch. With a `holder` it is the follow-up of that run.
local function add_run(suffix, priority, due, expiry, id, rest, holder, flags)
  number = number + 1
  local run, lock = format_run_number(number), options[C.OPTION_LOCK] or ""
  local terms = options[C.OPTION_TERMS] or ""
  made[number - first], tasks_made[number - first] = run, task
  amount_of[task] = (amount_of[task] or 0) + 1
  if terms ~= "" then termed[#termed + 1], terms_of[#terms_of + 1] = run, terms end
  if id then is_new[id] = true end
  local record = format_new_job_record(id and "=" .. id or suffix, now_text, rest)
  add_job(batch, run, record, id, lock, expiry ~= "" and format_integer(parse_time_argument(expiry, now)))
  local start = due == "" and now or parse_time_argument(due, now)
  if priority ~= scored_priority or start ~= scored_start then
    score, scored_priority, scored_start = format_integer(pending_score(priority, start)), priority, start
  end
  if holder then
    redis.call("ZADD", K.blocked, score, run)
    add_follow_up_to_processing_run(holder, run, flags)
  elseif start > now then
    add_scheduled(batch, run, format_integer(scheduled_score(priority, start)))
    first_scheduled = first_scheduled or run
  else
    add_due(batch, run, score, lock)
  end
  return run
end

-- A throttle's token begins with its period.
local function once_kept_ms(its_token)
  return string.match(its_token, "^(%d+)~") or C.ONCE_KEPT_MS
end

for at = FIRST_JOB, #ARGV, WORDS_PER_JOB do
  local rest, flags, token, id, holder, outcome = ARGV[at + 1], nil, "", nil, nil, nil
  local suffix, priority, due, expiry, name = parse_settings(ARGV[at])
  parse_options(rest)
  if name ~= "" then
    flags, token, id = string.match(name, "^([^=!]*)!?([^=]*)=(.+)$")
    holder, outcome = resolve_id(id, flags, token, priority, due, expiry, rest)
  end
  if not holder and (options[C.OPTION_PARENTS] or "") ~= "" then
    -- It has parents, and the run of its id has just ended.
    holder, outcome = "-", "untied"
  end
  local blobs = options[C.OPTION_BLOBS] or ""
  if blobs ~= "" and not outcome and not can_take_blobs(blobs) then holder, outcome = "-", "blob" end
  if outcome then
    reply[#reply + 1] = format_integer((at - FIRST_JOB) / WORDS_PER_JOB)
    reply[#reply + 1] = outcome .. " " .. holder
  else
    local run = add_run(suffix, priority, due, expiry, id, rest, holder, flags)
    if blobs ~= "" then take_blobs(run, blobs) end
    if token ~= "" then redis.call("SET", K.once .. ":" .. token, run, "PX", once_kept_ms(token)) end
  end
end

freed = freed + write_new_jobs(batch)
if #made > 0 then
  redis.call("HSET", K.meta, "run", format_integer(number))
  for of_task, amount in pairs(amount_of) do count(of_task, "enqueued", amount) end
  add_new_runs_to_task_index(first + 1, tasks_made)
  if #termed > 0 then add_new_runs_to_search_terms(termed, terms_of) end
  emit_enqueue_event(made[1], #made)
end
emit_event("update", updated)
if freed == 1 then
  push_job_to_idle_worker(now)
elseif freed > 1 then
  wake_idle_workers(math.min(freed, 8))
elseif first_scheduled or #updated > 0 then
  -- If the next run to fall due is new or has moved, an idle worker must set its timer.
  local next_run = redis.call("ZRANGE", K.scheduled, 0, 0)[1]
  if next_run and (#updated > 0 or next_run >= first_scheduled) then wake_idle_workers(1) end
end
write_counters(now)
local text = table.concat(reply, "\n")
remember_reply("enqueue", call_number, text)
return text
