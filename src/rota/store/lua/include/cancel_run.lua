-- Ends a run as cancelled, once it has left the index that it was in. It is kept by its own rule unless another is given.
-- keys: runs, cancelled
-- @include finish
-- @include note
-- @include policy
-- @include record
-- @include text_of

local function cancel_run(run, r, reason, now, rule)
  r.state, r.ended_at, r.reason = "cancelled", text_of(now), string.gsub(reason, "\n", " ")
  redis.call("HSET", runs, run, write_record(r))
  note(run, {
    at = now, verb = "cancel", state = "cancelled", worker = r.worker, attempt = tonumber(r.attempt),
    since = tonumber(r.claimed_at), note = reason,
  })
  finish(cancelled, "cancelled", { [rule or policy(run).finished_rule] = { run } }, now)
end
