-- return: processing -> scheduled | blocked | pending | failed
--
-- Hands back runs that a worker will not finish: each keeps its score, and no failure is counted. A run that may run
-- only once and has started fails. Sent again with the same claim, it returns "already".
--
-- flags: allow-oom
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3…] three for each run: run, claim, "started" or "unstarted"
--
-- Returns index and "already" | "missing" | "cancelled" | "lease_lost" for each run that was refused, or "later": the
-- call has handled enough bytes, and the report is to be sent again

-- @include each_accepted_report
-- @include gather_and_write_counts
-- @include now_ms
-- @include read_job_record
-- @include stall_and_retention_policy_of_run
-- @include charge_stall_and_requeue_or_fail_runs
-- @include wake_idle_workers

local now, returned, is_unstarted = now_ms(), {}, {}
local refused = each_accepted_report(3, now, function(run, _, started)
  returned[#returned + 1], is_unstarted[run] = run, started == "unstarted"
  count_job_record(run)
end)
local released = charge_stall_and_requeue_or_fail_runs(returned, now, "reports", function(run)
  return not is_unstarted[run] and policy_of(run).at_most_once, is_unstarted[run]
end)
wake_idle_workers(math.min(released, 8))
write_counters(now)
return refused
