-- announce: no change of state
--
-- A worker says that it lives and what it is doing, and hears whether it is to leave. Workers that have been silent for a
-- day are forgotten. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS workers        hash  worker -> what it says of itself
-- KEYS seen           zset  worker -> last sign of life, ms
-- KEYS drains         set   workers that are to leave
-- KEYS flow_due       zset  workflow that somebody must see to -> when
-- KEYS operation_due  zset  operation that is not over -> when somebody must go on with it
-- ARGV[1] worker
-- ARGV[2] info     JSON
--
-- Returns the server's time, ms, and behind it what nobody sees to just now: "flows", "operations"; and "drain" if the
-- worker was asked to leave

-- @include emit
-- @include now_ms
-- @include text_of

local now = text_of(now_ms())

local function is_due(key)
  local first = redis.call("ZRANGE", key, 0, 0, "WITHSCORES")[2]
  return first and tonumber(first) <= tonumber(now)
end

local function state_of(said) return string.match(said or "", '"state":%s*"(%a+)"') end
-- Only what others show of it differs: its figures change with every sign of life.
if state_of(redis.call("HGET", workers, worker)) ~= state_of(info) then emit("worker", { worker }) end
redis.call("HSET", workers, worker, info)
redis.call("ZADD", seen, now, worker)
local gone = redis.call("ZRANGE", seen, "-inf", text_of(now - 86400000), "BYSCORE", "LIMIT", 0, 100)
if #gone > 0 then
  redis.call("ZREM", seen, unpack(gone))
  redis.call("HDEL", workers, unpack(gone))
  redis.call("SREM", drains, unpack(gone))
end
local due = (is_due(flow_due) and " flows" or "") .. (is_due(operation_due) and " operations" or "")
return now .. due .. (redis.call("SISMEMBER", drains, worker) == 1 and " drain" or "")
