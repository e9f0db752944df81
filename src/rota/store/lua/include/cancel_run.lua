-- Ends a run as cancelled, once it has left the index that it was in.
-- keys: runs, cancelled
-- @include count_run
-- @include finish
-- @include note
-- @include policy
-- @include record
-- @include text_of

local function write_cancelled(run, r, reason, now)
  r.state, r.ended_at, r.reason = "cancelled", text_of(now), string.gsub(reason, "\n", " ")
  redis.call("HSET", runs, run, write_record(r))
  count_run(run, "cancelled")
  note(run, {
    at = now, verb = "cancel", state = "cancelled", worker = r.worker, attempt = tonumber(r.attempt),
    since = tonumber(r.claimed_at), note = reason,
  })
end

local function cancel_run(run, r, reason, now)
  write_cancelled(run, r, reason, now)
  finish(cancelled, "cancelled", { [policy(run).finished_rule] = { run } }, now)
end
