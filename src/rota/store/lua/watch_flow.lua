-- watch_flow: no change of state
--
-- Asks to be told when a workflow ends, or waits for a human. Looking and asking are one step. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS flow  prefix  of one hash per workflow, `flow:<id>`
-- ARGV[1] id
-- ARGV[2] client  whose inbox to tell
--
-- Returns its state, or "missing"


local key = flow .. ":" .. id
local state, clients = unpack(redis.call("HMGET", key, "state", "waiters"))
if not state then return "missing" end
if not string.find(" " .. (clients or "") .. " ", " " .. client .. " ", 1, true) then
  redis.call("HSET", key, "waiters", clients and clients .. " " .. client or client)
end
return state
