-- confirm_cancelled_run_stopped: processing | cancelled -> cancelled
--
-- Confirms that the handlers of cancelled or deleted runs have stopped: their locks and ids are free, and their
-- dependents are notified. A run that is still processing, because a failover lost the cancel, is cancelled now. Sent
-- again, it changes nothing: the run is released once.
--
-- flags: allow-oom
-- KEYS runs        hash  run -> run record: state, claim, worker, times, counts
-- KEYS processing  zset  run -> deadline of its lease, ms
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3…] two for each run: run, claim
--
-- Returns index and "already" | "missing" | "lease_lost" for each run that was refused

-- @include end_run_as_cancelled
-- @include format_integer
-- @include gather_and_write_counts
-- @include now_ms
-- @include parse_and_format_run_record
-- @include reason_to_refuse_report
-- @include release_id_and_lock_of_stopped_run
-- @include release_next_runs_if_any_wait
-- @include wake_idle_workers

local now, freed, refused = now_ms(), 0, {}
for at = 3, #ARGV, 2 do
  local run, claim = ARGV[at], ARGV[at + 1]
  local line = redis.call("HGET", K.runs, run)
  if is_claim(line, "cancelled", claim) then
    freed = freed + release_id_and_lock_of_stopped_run(run, now)
  elseif is_claim(line, "processing", claim) then
    redis.call("ZREM", K.processing, run)
    freed = freed + release_next_runs_if_any_wait({ run }, "cancelled", now)
    end_run_as_cancelled(run, parse_run_record(line), "its handler was stopped", now)
  else
    refused[#refused + 1], refused[#refused + 2] = format_integer((at - 3) / 2), reason_to_refuse_report(line, claim)
  end
end
wake_idle_workers(freed)
write_counters(now)
return refused
