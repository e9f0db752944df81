-- cancel_self: processing -> cancelled
--
-- Cancels runs whose own handlers asked for it. The attempt has ended, so there is no handler to stop. Sent again
-- with the same claim, it returns "cancelled".
--
-- flags: allow-oom
-- KEYS processing  zset  run -> deadline of its lease, ms
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3…] three for each run: run, claim, reason
--
-- Returns index and "already" | "missing" | "cancelled" | "lease_lost" for each run that was refused, or "later": the
-- call has handled enough bytes, and the report is to be sent again

-- @include each_accepted_report
-- @include end_run_as_cancelled
-- @include gather_and_write_counts
-- @include now_ms
-- @include parse_and_format_run_record
-- @include release_next_runs_if_any_wait
-- @include wake_idle_workers

local now = now_ms()
local refused = each_accepted_report(3, now, function(run, line, reason)
  redis.call("ZREM", K.processing, run)
  local freed = release_next_runs_if_any_wait({ run }, "cancelled", now)
  end_run_as_cancelled(run, parse_run_record(line), reason, now)
  wake_idle_workers(freed)
end)
write_counters(now)
return refused
