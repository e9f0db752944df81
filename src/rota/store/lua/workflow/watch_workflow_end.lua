-- watch_workflow_end: no change of state
--
-- Watches for a workflow's end: registers a client to be notified when it ends, or is held or parked. Checking and
-- registering are one step. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS workflow  prefix  `workflow:…`: one workflow: graph, state, steps
-- ARGV[1] id
-- ARGV[2] client  client to notify
--
-- Returns its state, or "missing"


local key = K.workflow .. ":" .. id
local state, clients = unpack(redis.call("HMGET", key, "state", "waiters"))
if not state then return "missing" end
if not string.find(" " .. (clients or "") .. " ", " " .. client .. " ", 1, true) then
  redis.call("HSET", key, "waiters", clients and clients .. " " .. client or client)
end
return state
