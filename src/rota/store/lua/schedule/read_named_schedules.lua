-- read_named_schedules: no change of state
--
-- Reads schedules by name, as one snapshot.
--
-- flags: no-writes
-- KEYS schedules     hash  schedule -> state, rule, settings, its job
-- KEYS schedule_due  zset  schedule that is not paused -> its next tick, ms
-- ARGV[1…] names
--
-- Returns the server's time, then for each its next tick or "", and its record or ""

-- @include format_integer
-- @include now_ms

local reply = { format_integer(now_ms()) }
for at = 1, #ARGV do
  local tick = redis.call("ZSCORE", K.schedule_due, ARGV[at])
  reply[2 * at] = tick and format_integer(tick) or ""
  reply[2 * at + 1] = redis.call("HGET", K.schedules, ARGV[at]) or ""
end
return reply
