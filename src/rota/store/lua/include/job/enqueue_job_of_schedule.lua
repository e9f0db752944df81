-- Enqueues one job that is due now, under a new id: for scripts that make jobs of schedules. Returns its run, and how
-- many runs became pending: 0 where its lock blocks it.
-- @include count_and_index_new_run
-- @include format_integer
-- @include format_new_job_record
-- @include format_run_number
-- @include increment_counter
-- @include parse_time_argument
-- @include pending_score
-- @include split_and_join_job_record
-- @include write_new_jobs

local function enqueue_job_of_schedule(id, priority, expiry, body, now)
  local run = format_run_number(increment_counter(K.meta, "run", 1))
  local record = format_new_job_record("=" .. id, format_integer(now), body)
  local _, options = split_job_record(record)
  local lock = split_options(options)[C.OPTION_LOCK]
  local batch = new_job_batch(K.jobs, K.pending)
  add_job(batch, run, record, id, lock, expiry ~= "" and format_integer(parse_time_argument(expiry, now)))
  add_due(batch, run, format_integer(pending_score(priority, now)), lock)
  count_and_index_new_run(run, record)
  return run, write_new_jobs(batch)
end
