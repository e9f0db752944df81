-- renew_registration: no change of state
--
-- Renews a worker's registry entry and returns what needs a driver, and whether the worker is asked to stop. Removes
-- workers that have been silent for a day. An entry that is sent again, or arrives late, replaces none.
--
-- flags: allow-oom
-- KEYS workers        hash  worker -> its registry entry, JSON
-- KEYS worker_seen    zset  worker -> last registration, ms
-- KEYS draining       hash  worker that was asked to stop -> "operator" or "planner"
-- KEYS barred_machines zset  machine that is about to be removed -> since, ms
-- KEYS workflow_due   zset  workflow that needs a decision -> when
-- KEYS operation_due  zset  unfinished bulk operation -> when a driver may take it
-- ARGV[1] worker
-- ARGV[2] info     JSON
-- ARGV[3] machine  that it runs on
--
-- Returns the server's time, ms, then what needs a driver: "workflows", "operations"; and "drain" if the worker is
-- asked to stop

-- @include emit_event
-- @include format_integer
-- @include is_late_registration
-- @include now_ms

local now = format_integer(now_ms())

local function is_due(key)
  local first = redis.call("ZRANGE", key, 0, 0, "WITHSCORES")[2]
  return first and tonumber(first) <= tonumber(now)
end

local function state_of(said) return string.match(said or "", '"state":%s*"(%a+)"') end
-- Events only for a change of state: the metrics in the entry change with every registration.
local state, stored = state_of(info), redis.call("HGET", K.workers, worker)
if not is_late_registration(stored, info) then
  if state_of(stored) ~= state then
    emit_event("worker", { worker })
    if state then emit_event("worker_" .. state, { worker }) end
  end
  redis.call("HSET", K.workers, worker, info)
  redis.call("ZADD", K.worker_seen, now, worker)
end
local silent_since = format_integer(now - C.WORKER_KEPT_MS)
local gone = redis.call("ZRANGE", K.worker_seen, "-inf", silent_since, "BYSCORE", "LIMIT", 0, 100)
if #gone > 0 then
  redis.call("ZREM", K.worker_seen, unpack(gone))
  redis.call("HDEL", K.workers, unpack(gone))
  redis.call("HDEL", K.draining, unpack(gone))
end
local due = (is_due(K.workflow_due) and " workflows" or "") .. (is_due(K.operation_due) and " operations" or "")
local must_drain = redis.call("HEXISTS", K.draining, worker) == 1 or redis.call("ZSCORE", K.barred_machines, machine)
return now .. due .. (must_drain and " drain" or "")
