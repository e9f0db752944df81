-- save_operation_progress: no change of state
--
-- Saves the progress of a bulk operation, or its end, on behalf of the driver that has taken it. A driver numbers its
-- calls: one that is sent again, or arrives late, changes nothing.
--
-- flags: allow-oom
-- KEYS operation      prefix  `operation:…`: one bulk operation and its progress
-- KEYS operation_due  zset    unfinished bulk operation -> when a driver may take it
-- ARGV[1] id
-- ARGV[2] driver   driver that has taken it
-- ARGV[3] number   of this call; grows with each call of the driver
-- ARGV[4] hold_ms  how long no other driver may take it
-- ARGV[5] outcome  "" while it runs, else its final state
-- ARGV[6] kept_ms  how long it is kept after that
-- ARGV[7…] fields of its record and their values
--
-- Returns "saved" | "lost" (another driver has taken it) | "stop" (it is to be stopped)

-- @include emit_event
-- @include format_integer
-- @include now_ms

local key, now = K.operation .. ":" .. id, now_ms()
local state, owner, latest = unpack(redis.call("HMGET", key, "state", "driver", "save_number"))
if owner ~= driver or not state then return "lost" end
local answer = state == "stopping" and outcome == "" and "stop" or "saved"
if tonumber(number) <= tonumber(latest) then return answer end
redis.call("HSET", key, "save_number", number, unpack(ARGV, 7))
if outcome ~= "" then
  redis.call("HSET", key, "state", outcome, "ended_at", format_integer(now))
  redis.call("HDEL", key, "jobs") -- the chosen jobs are no longer needed
  redis.call("ZREM", K.operation_due, id)
else
  redis.call("ZADD", K.operation_due, format_integer(now + hold_ms), id)
end
redis.call("PEXPIRE", key, kept_ms)
emit_event("operation", { id })
return answer
