-- pause_or_resume_queue: no change of state
--
-- Pauses all claims of a queue, or resumes them. Jobs can still be enqueued and reported. Sent again with the same
-- token, it changes nothing: by then another call may have had the last word.
--
-- flags: allow-oom
-- KEYS meta  hash  counters run, fence, totals; is_paused, server_seen, grace_until
-- ARGV[1] queue
-- ARGV[2] inbox   prefix of the channels
-- ARGV[3] wanted  "paused" or "open"
--
-- Returns "paused" | "open"

-- @include emit_event
-- @include run_once_per_token
-- @include wake_idle_workers

return run_once_per_token(function()
  if wanted == "paused" then
    if redis.call("HSET", K.meta, "is_paused", 1) > 0 then emit_event("pause", { queue }) end
  elseif redis.call("HDEL", K.meta, "is_paused") > 0 then
    emit_event("resume", { queue })
    wake_idle_workers(8)
  end
  return wanted
end)
