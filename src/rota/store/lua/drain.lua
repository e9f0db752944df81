-- drain: no change of state
--
-- Asks a worker to take no more jobs, finish what it runs, and leave. It is told at once, and with every sign of life that
-- it gives, so that a lost push delays it by seconds. A name is never used again, so no later worker is meant. Harmless
-- when sent again.
--
-- flags: allow-oom
-- KEYS workers  hash  worker -> what it says of itself
-- KEYS drains   set   workers that are to leave
-- ARGV[1] inbox   prefix of the channels
-- ARGV[2] worker
--
-- Returns "draining" | "stopped" | "missing"

-- @include emit

local said = redis.call("HGET", workers, worker)
if not said then return "missing" end
if cjson.decode(said).state == "stopped" then return "stopped" end
if redis.call("SADD", drains, worker) == 1 then emit("worker", { worker }) end
redis.call("PUBLISH", inbox .. worker, "drain")
return "draining"
