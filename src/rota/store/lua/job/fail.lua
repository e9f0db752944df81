-- fail: processing -> scheduled | blocked | pending | failed
--
-- Ends failed attempts: each run waits for its next attempt, or becomes a dead letter. The worker computes the delay;
-- the script checks the claim. Sent again with the same claim, it returns "already".
--
-- flags: allow-oom
-- KEYS processing  zset  run -> deadline of its lease, ms
-- KEYS errors      hash  run -> its last error
-- KEYS progress    hash  run -> progress of its attempt
-- KEYS failed      zset  run -> time it ended, ms: the dead letters
-- KEYS runs        hash  run -> run record: state, claim, worker, times, counts
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3…] five for each run: run, claim, moment of the next attempt or "final", retention rule, error as JSON
--
-- Returns index and "already" | "missing" | "cancelled" | "lease_lost" for each run that was refused, or "later": the
-- call has handled enough bytes, and the report is to be sent again

-- @include add_history_entry
-- @include count_event_of_run
-- @include each_accepted_report
-- @include emit_event
-- @include enqueue_failure_jobs
-- @include format_integer
-- @include gather_and_write_counts
-- @include group_dead_letters_by_error
-- @include index_retain_and_announce_finished_runs
-- @include now_ms
-- @include parse_and_format_run_record
-- @include parse_time_argument
-- @include pending_score
-- @include release_next_runs_if_any_wait
-- @include requeue_run_and_merge_follow_up
-- @include summarize_error_for_history
-- @include wake_idle_workers

local now = now_ms()
local retried, dead, by_rule = {}, {}, {}

local refused = each_accepted_report(5, now, function(run, line, next_attempt, rule, err)
  local r, is_final = parse_run_record(line), next_attempt == "final"
  r.failures = r.failures + 1
  local task = count_event_of_run(run, "failed", now, r.claimed_at)
  redis.call("ZREM", K.processing, run)
  redis.call("HDEL", K.progress, run)
  redis.call("HSET", K.errors, run, err)
  group_dead_letters_by_error(run, err, is_final, now)
  local state
  if is_final then
    state, r.state, r.ended_at = "failed", "failed", format_integer(now)
    redis.call("HSET", K.runs, run, format_run_record(r))
    by_rule[rule] = by_rule[rule] or {}
    table.insert(by_rule[rule], run)
    dead[#dead + 1] = run
    count(task, "dead")
  else
    local score = pending_score(priority_in_score(r.score), parse_time_argument(next_attempt, now))
    state = requeue_run_and_merge_follow_up(run, r, score, now)
    retried[#retried + 1] = run
    count(task, "retried")
  end
  add_history_entry(run, {
    at = now, verb = "fail", state = state, worker = r.worker, attempt = tonumber(r.attempt),
    since = tonumber(r.claimed_at), note = summarize_error_for_history(err),
  })
end)

emit_event("fail", retried)
local failure_jobs = enqueue_failure_jobs(dead, now)
local freed = release_next_runs_if_any_wait(dead, "failed", now)
index_retain_and_announce_finished_runs(K.failed, "failed", by_rule, now)
wake_idle_workers(freed + math.min(#retried, 1) + failure_jobs)
write_counters(now)
return refused
