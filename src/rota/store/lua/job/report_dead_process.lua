-- report_dead_process: processing -> scheduled | blocked | pending | failed
--
-- Reports that the process which ran some runs has died. They are taken back from their worker, and are pending again
-- at once, without waiting for their leases. The run that is known to be the reason is charged a stall; for one that
-- ran beside others, the crash is only counted, so that its next worker runs it in isolation. Sent again with the
-- same claim, it returns "already".
--
-- flags: allow-oom
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3…] four for each run: run, claim, "charged" or "uncharged", what happened to the process
--
-- Returns index and "already" | "missing" | "cancelled" | "lease_lost" for each run that was refused, or "later": the
-- call has handled enough bytes, and the report is to be sent again

-- @include each_accepted_report
-- @include format_integer
-- @include gather_and_write_counts
-- @include now_ms
-- @include read_job_record
-- @include stall_and_retention_policy_of_run
-- @include charge_stall_and_requeue_or_fail_runs
-- @include wake_idle_workers

local now, lost, is_uncharged, what_happened = now_ms(), {}, {}, {}
local refused = each_accepted_report(4, now, function(run, _, charge, what)
  lost[#lost + 1], is_uncharged[run], what_happened[run] = run, charge == "uncharged", what
  count_job_record(run)
end)
local released = charge_stall_and_requeue_or_fail_runs(lost, now, "reports", function(run, r)
  local charged = not is_uncharged[run] or policy_of(run).at_most_once
  if not charged then r.ended_at = "!" .. format_integer((string.match(r.ended_at, "^!(%d+)$") or 0) + 1) end
  return charged, false, what_happened[run]
end)
wake_idle_workers(math.min(released, 8))
write_counters(now)
return refused
