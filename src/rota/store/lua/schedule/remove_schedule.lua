-- remove_schedule: no change of state
--
-- Removes a schedule. The jobs that it has made stay. Sent again with the same token, it returns the first reply.
--
-- flags: allow-oom
-- KEYS schedules     hash  schedule -> state, rule, settings, its job
-- KEYS schedule_due  zset  schedule that is not paused -> its next tick, ms
-- ARGV[1] name
--
-- Returns "removed" | "missing"

-- @include emit_event
-- @include run_once_per_token

return run_once_per_token(function()
  if redis.call("HDEL", K.schedules, name) == 0 then return "missing" end
  redis.call("ZREM", K.schedule_due, name)
  emit_event("remove_schedule", { name })
  return "removed"
end)
