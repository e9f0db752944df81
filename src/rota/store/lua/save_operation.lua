-- save_operation: no change of state
--
-- How far an operation on many jobs has come, by who has taken it; or that it is over. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS operation      prefix  of one hash per operation, `operation:<id>`
-- KEYS operation_due  zset    operation that is not over -> when somebody must go on with it
-- ARGV[1] id
-- ARGV[2] driver   who has taken it
-- ARGV[3] hold_ms  how long nobody else goes on with it
-- ARGV[4] outcome  "" while it goes on, else the state that it ends in
-- ARGV[5] kept_ms  how long it is kept then
-- ARGV[6…] fields of its record and their values
--
-- Returns "saved" | "lost" (somebody else has taken it) | "stop" (it was asked to)

-- @include emit
-- @include now_ms
-- @include text_of

local key, now = operation .. ":" .. id, now_ms()
local state, owner = unpack(redis.call("HMGET", key, "state", "driver"))
if owner ~= driver or not state then return "lost" end
redis.call("HSET", key, unpack(ARGV, 6))
if outcome ~= "" then
  redis.call("HSET", key, "state", outcome, "ended_at", text_of(now))
  redis.call("HDEL", key, "jobs") -- those that were chosen: nobody needs them any more
  redis.call("ZREM", operation_due, id)
else
  redis.call("ZADD", operation_due, text_of(now + hold_ms), id)
end
redis.call("PEXPIRE", key, kept_ms)
emit("operation", { id })
return state == "stopping" and outcome == "" and "stop" or "saved"
