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
-- ARGV[4] by      who pauses it
-- ARGV[5] note
--
-- Returns "paused" | "open"

-- @include emit_event
-- @include format_integer
-- @include now_ms
-- @include run_once_per_token
-- @include wake_idle_workers

return run_once_per_token(function()
  if wanted == "paused" then
    if redis.call("HSETNX", K.meta, "is_paused", 1) > 0 then
      redis.call("HSET", K.meta, "paused_at", format_integer(now_ms()), "paused_by", by, "pause_note", note)
      emit_event("pause", { queue })
    end
  elseif redis.call("HDEL", K.meta, "is_paused") > 0 then
    redis.call("HDEL", K.meta, "paused_at", "paused_by", "pause_note")
    emit_event("resume", { queue })
    wake_idle_workers(8)
  end
  return wanted
end)
