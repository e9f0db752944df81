-- announce: no change of state
--
-- A worker says that it lives and what it is doing, and hears whether it is to leave. Workers that have been silent for a
-- day are forgotten. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS workers  hash  worker -> what it says of itself
-- KEYS seen     zset  worker -> last sign of life, ms
-- KEYS drains   hash  worker that is to leave -> when that was asked for, ms
-- ARGV[1] worker
-- ARGV[2] info     JSON
--
-- Returns "drain" if it was asked to leave, else ""

-- @include now_ms
-- @include text_of

local now = text_of(now_ms())
redis.call("HSET", workers, worker, info)
redis.call("ZADD", seen, now, worker)
local gone = redis.call("ZRANGE", seen, "-inf", text_of(now - 86400000), "BYSCORE", "LIMIT", 0, 100)
if #gone > 0 then
  redis.call("ZREM", seen, unpack(gone))
  redis.call("HDEL", workers, unpack(gone))
  redis.call("HDEL", drains, unpack(gone))
end
return redis.call("HEXISTS", drains, worker) == 1 and "drain" or ""
