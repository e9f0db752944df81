-- Refuses a report: adds its index and the reason to the reply. A report about a run that was cancelled or deleted
-- while its handler ran proves that the handler has stopped, so the run is released.
-- @include format_integer
-- @include reason_to_refuse_report
-- @include release_id_and_lock_of_stopped_run
-- @include wake_idle_workers

local function refuse_report_and_release_stopped_run(refused, index, run, line, claim, now)
  local reason = reason_to_refuse_report(line, claim)
  if reason == "cancelled" then wake_idle_workers(release_id_and_lock_of_stopped_run(run, now)) end
  refused[#refused + 1], refused[#refused + 2] = format_integer(index), reason
end
