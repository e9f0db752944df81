-- Pushes a job to an idle worker and writes the counters of that claim, for a script that counts nothing else.
-- @include gather_and_write_counts
-- @include push_job_to_idle_worker

local function push_job_to_idle_worker_and_count(now)
  push_job_to_idle_worker(now)
  write_counters(now)
end
