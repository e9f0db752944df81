-- Runs have failed for good: for each whose task has a failure handler, a job that calls it is made in the queue of
-- failures, in the same step. Runs of that queue itself have none. To be called once their records say so, and before
-- `finish`, which may forget them. Says how many workers of this queue are yet to be woken.
-- keys: jobs, runs, errors, handlers, fail_meta, fail_jobs, fail_pending, fail_idle, fail_events
-- @include book
-- @include index_task
-- @include note
-- @include parts
-- @include place
-- @include record
-- @include run_name
-- @include tally
-- @include text_of
-- @include wake

-- The job that failed, as its handler is told of it. A number that was damaged by hand counts as 0: an error here would
-- fail every claim of the queue.
local function told_of(id, run, line, task, options, enqueued_at)
  local r = read_record(line)
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

local function alert(dead, now)
  if #dead == 0 or string.sub(queue, -5) == "-fail" or redis.call("EXISTS", handlers) == 0 then return 0 end
  local records, places, made = {}, {}, {}
  local fail_book = open_book(fail_meta)
  for _, run in ipairs(dead) do
    local head, asked, task, arguments = split_record(redis.call("HGET", jobs, run) or "")
    local name, enqueued_at = string.match(head or "", "^(%S+) (%d+)$")
    local options = name and redis.call("HGET", handlers, task)
    if options then
      local line = redis.call("HGET", runs, run)
      local id = string.match(name, "^=(.+)$") or run .. "-" .. name
      local new = run_name(redis.call("HINCRBY", fail_meta, "run", 1))
      -- Eight characters that nobody can guess, as the line has the worker's name, and the claim's token.
      local suffix = string.sub(redis.sha1hex(queue .. run .. line), 1, 8)
      -- Texts are put side by side: what the user wrote as JSON stays as it was.
      local told = told_of(id, run, line, task, asked, enqueued_at)
      local rest = "[" .. (redis.call("HGET", errors, run) or "{}") .. "," .. told .. "," .. arguments .. "]"
      local ok, general = pcall(cjson.decode, split_options(options)[1])
      local priority = ok and type(general) == "table" and tonumber(general.priority) or 0
      records[#records + 1] = new
      records[#records + 1] = suffix .. " " .. text_of(now) .. "\n" .. options .. "\n" .. task .. ".on_failure\n" .. rest
      places[#places + 1], places[#places + 2] = text_of(place(priority, now)), new
      made[#made + 1] = new
      count(task .. ".on_failure", "enqueued", 1, fail_book)
      index_task(new, task .. ".on_failure", fail_book)
      note(run, { at = now, verb = "alert", note = queue .. "-fail:" .. new .. "-" .. suffix })
    end
  end
  if #made == 0 then return 0 end
  write_tally(now, fail_book)
  redis.call("HSET", fail_jobs, unpack(records))
  redis.call("ZADD", fail_pending, unpack(places))
  redis.call("XADD", fail_events, "MAXLEN", "~", 10000, "*", "enqueue", table.concat(made, " "))
  -- Few wait for failures alone; all workers of this queue look there when told that something is due.
  local wanted = math.min(#made, 8)
  return wanted - rouse(fail_idle, queue .. "-fail", wanted)
end
