-- Counts an event of one run under its task, which it reads from the job record.
-- @include count_duration_by_task
-- @include gather_and_write_counts
-- @include read_job_record
-- @include task_of_job_record

-- `ran_since` is the start of the attempt that ended, if one did.
local function count_event_of_run(run, what, now, ran_since)
  local task = task_of_job_record(read_job_record(run) or "")
  count(task, what)
  ran_since = tonumber(ran_since or nil)
  if ran_since then count_duration_by_task(task, "ran", now - ran_since, 1) end
  return task
end
