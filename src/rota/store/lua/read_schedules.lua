-- read_schedules: no change of state
--
-- Schedules by their names, at one moment.
--
-- flags: no-writes
-- KEYS schedules  hash  schedule -> state, rule, settings, its job
-- KEYS ticks      zset  schedule -> its next tick, ms
-- ARGV[1…] names
--
-- Returns the server's time, then for each its next tick or "", and its record or ""

-- @include now_ms
-- @include text_of

local reply = { text_of(now_ms()) }
for at = 1, #ARGV do
  local tick = redis.call("ZSCORE", ticks, ARGV[at])
  reply[2 * at] = tick and text_of(tick) or ""
  reply[2 * at + 1] = redis.call("HGET", schedules, ARGV[at]) or ""
end
return reply
