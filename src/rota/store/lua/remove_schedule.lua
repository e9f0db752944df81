-- remove_schedule: no change of state
--
-- Forgets a schedule. The jobs that it has made stay. Sent again with the same token, it says what the first one did.
--
-- flags: allow-oom
-- KEYS schedules  hash  schedule -> state, rule, settings, its job
-- KEYS ticks      zset  schedule -> its next tick, ms
-- ARGV[1] name
--
-- Returns "removed" | "missing"

-- @include emit
-- @include once

return once(function()
  if redis.call("HDEL", schedules, name) == 0 then return "missing" end
  redis.call("ZREM", ticks, name)
  emit("remove_schedule", { name })
  return "removed"
end)
