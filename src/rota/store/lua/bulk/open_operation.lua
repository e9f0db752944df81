-- open_operation: no change of state
--
-- Stores a new bulk operation; from then on any driver may carry it out. Sent again, it changes nothing: by then the
-- operation may be under way, stopped or completed.
--
-- KEYS operation      prefix  `operation:…`: one bulk operation and its progress
-- KEYS operations     zset    bulk operation -> when it was made
-- KEYS operation_due  zset    unfinished bulk operation -> when a driver may take it
-- ARGV[1] id
-- ARGV[2] created_at  ms
-- ARGV[3] kept_ms     how long it is kept
-- ARGV[4…] fields of its record and their values
--
-- Returns "opened" | "already"

local key = K.operation .. ":" .. id
if redis.call("EXISTS", key) > 0 then return "already" end
redis.call("HSET", key, "state", "running", unpack(ARGV, 4))
redis.call("PEXPIRE", key, kept_ms)
redis.call("ZADD", K.operations, created_at, id)
redis.call("ZADD", K.operation_due, created_at, id)
return "opened"
