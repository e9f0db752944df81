-- snooze: processing -> scheduled | blocked | pending
--
-- Ends attempts whose handlers asked to run later: each run waits, and no failure is counted. Sent again with the
-- same claim, it returns "already".
--
-- flags: allow-oom
-- KEYS processing  zset  run -> deadline of its lease, ms
-- KEYS progress    hash  run -> progress of its attempt
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3…] three for each run: run, claim, moment of the next attempt
--
-- Returns index and "already" | "missing" | "cancelled" | "lease_lost" for each run that was refused, or "later": the
-- call has handled enough bytes, and the report is to be sent again

-- @include add_history_entry
-- @include each_accepted_report
-- @include emit_event
-- @include now_ms
-- @include parse_and_format_run_record
-- @include parse_time_argument
-- @include pending_score
-- @include requeue_run_and_merge_follow_up
-- @include wake_idle_workers

local now, snoozed = now_ms(), {}

local refused = each_accepted_report(3, now, function(run, line, next_attempt)
  local r = parse_run_record(line)
  r.snoozes = r.snoozes + 1
  redis.call("ZREM", K.processing, run)
  redis.call("HDEL", K.progress, run)
  local score = pending_score(priority_in_score(r.score), parse_time_argument(next_attempt, now))
  local state = requeue_run_and_merge_follow_up(run, r, score, now)
  add_history_entry(run, {
    at = now, verb = "snooze", state = state, worker = r.worker, attempt = tonumber(r.attempt),
    since = tonumber(r.claimed_at),
  })
  snoozed[#snoozed + 1] = run
end)

emit_event("snooze", snoozed)
if #snoozed > 0 then wake_idle_workers(1) end
return refused
