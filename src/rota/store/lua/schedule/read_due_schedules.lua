-- read_due_schedules: no change of state
--
-- Reads the schedules that are due, and when the next one will be, for a worker that fires them.
--
-- flags: no-writes
-- KEYS schedules     hash  schedule -> state, rule, settings, its job
-- KEYS schedule_due  zset  schedule that is not paused -> its next tick, ms
-- ARGV[1] bound    how many schedules at most
--
-- Returns the server's time, the first tick after it or "", then name, tick and record of each that is due

-- @include format_integer
-- @include now_ms

local now = format_integer(now_ms())
local later = redis.call("ZRANGE", K.schedule_due, "(" .. now, "+inf", "BYSCORE", "LIMIT", 0, 1, "WITHSCORES")
local reply = { now, later[2] and format_integer(later[2]) or "" }
local due = redis.call("ZRANGE", K.schedule_due, "-inf", now, "BYSCORE", "LIMIT", 0, bound, "WITHSCORES")
for i = 1, #due, 2 do
  local at = #reply
  reply[at + 1], reply[at + 2] = due[i], format_integer(due[i + 1])
  reply[at + 3] = redis.call("HGET", K.schedules, due[i]) or ""
end
return reply
