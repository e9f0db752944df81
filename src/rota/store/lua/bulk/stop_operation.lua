-- stop_operation: no change of state
--
-- Asks the driver of a bulk operation to stop; it learns that when it saves its progress. Does nothing to an
-- operation that has ended. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS operation  prefix  `operation:…`: one bulk operation and its progress
-- ARGV[1] id
--
-- Returns its state, or "missing"

local key = K.operation .. ":" .. id
local state = redis.call("HGET", key, "state") or "missing"
if state ~= "running" then return state end
redis.call("HSET", key, "state", "stopping")
return "stopping"
