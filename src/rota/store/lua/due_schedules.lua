-- due_schedules: no change of state
--
-- What a worker needs to know to fire: the schedules that are due, and when the next one will be.
--
-- flags: no-writes
-- KEYS schedules  hash  schedule -> state, rule, settings, its job
-- KEYS ticks      zset  schedule -> its next tick, ms
-- ARGV[1] bound    how many schedules at most
--
-- Returns the server's time, the first tick after it or "", then name, tick and record of each that is due

-- @include now_ms
-- @include text_of

local now = text_of(now_ms())
local later = redis.call("ZRANGE", ticks, "(" .. now, "+inf", "BYSCORE", "LIMIT", 0, 1, "WITHSCORES")
local reply = { now, later[2] and text_of(later[2]) or "" }
local due = redis.call("ZRANGE", ticks, "-inf", now, "BYSCORE", "LIMIT", 0, bound, "WITHSCORES")
for i = 1, #due, 2 do
  local at = #reply
  reply[at + 1], reply[at + 2] = due[i], text_of(due[i + 1])
  reply[at + 3] = redis.call("HGET", schedules, due[i]) or ""
end
return reply
