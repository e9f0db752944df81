-- Counts what has happened to one run, where its record is not at hand.
-- keys: jobs
-- @include count_time
-- @include tally
-- @include task_of

-- `ran_since` is when the attempt began that ended, if one did.
local function count_run(run, what, now, ran_since)
  local task = task_of(redis.call("HGET", jobs, run) or "")
  count(task, what)
  if ran_since then count_time(task, "ran", now - ran_since, 1) end
  return task
end
