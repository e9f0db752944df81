-- run_schedule_now: (none) -> blocked | pending
--
-- Makes a job of a schedule now, whatever its next tick, paused or not. Sent again with the same token, it makes
-- nothing and returns the first reply.
--
-- ARGV[1] queue
-- ARGV[2] inbox     prefix of the channels
-- ARGV[3] name
-- ARGV[4] revision  of the schedule that the caller read
-- ARGV[5] id        of the job
-- ARGV[6] priority
-- ARGV[7] expiry    moment, or ""
--
-- Returns the run | "missing" | "changed" | "in_use"

-- @include emit_event
-- @include enqueue_job_of_schedule
-- @include find_unfinished_run_of_id
-- @include gather_and_write_counts
-- @include now_ms
-- @include read_and_write_schedule_record
-- @include run_once_per_token
-- @include wake_idle_workers

return run_once_per_token(function()
  local state, rule, settings, body = read_schedule(name)
  if not state then return "missing" end
  if state.revision ~= tonumber(revision) then return "changed" end
  if find_unfinished_run_of_id(id) then return "in_use" end
  local now = now_ms()
  local run, became_pending = enqueue_job_of_schedule(id, tonumber(priority), expiry, body, now)
  write_counters(now)
  state.manual_id = id
  write_schedule(name, state, rule, settings, body)
  emit_event("enqueue", { run })
  emit_event("run_schedule_now", { name })
  wake_idle_workers(became_pending)
  return run
end)
