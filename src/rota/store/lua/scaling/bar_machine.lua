-- bar_machine: no change of state
--
-- Bars a machine that is about to be removed: a worker that registers from it later is asked to drain before it
-- starts a job. The planner reads the registry again after this call, and removes the machine if no worker of it is
-- alive. Harmless when sent again.
--
-- KEYS barred_machines  zset  machine that is about to be removed -> since, ms
-- ARGV[1] fence    of the planner lease
-- ARGV[2] machine
--
-- Returns "barred" | "fenced" (another planner has the lease)

-- @include format_integer
-- @include holds_planner_lease
-- @include now_ms

if not holds_planner_lease(fence) then return "fenced" end
local now = now_ms()
redis.call("ZREMRANGEBYSCORE", K.barred_machines, "-inf", format_integer(now - C.WORKER_KEPT_MS))
redis.call("ZADD", K.barred_machines, "NX", format_integer(now), machine)
return "barred"
