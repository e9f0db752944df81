-- report_drained: no change of state
--
-- Reports that a worker holds no job any more and exits; from then on it cannot be undrained. Refused if the request
-- to drain was withdrawn before. Notifies the planner, which may remove the machine. Harmless when sent again: an
-- entry that arrives late replaces none.
--
-- flags: allow-oom
-- KEYS workers         hash  worker -> its registry entry, JSON
-- KEYS worker_seen     zset  worker -> last registration, ms
-- KEYS draining        hash  worker that was asked to stop -> "operator" or "planner"
-- KEYS barred_machines zset  machine that is about to be removed -> since, ms
-- KEYS planner         hash  the planner lease: fence, holder, until; the latest decision recorded
-- ARGV[1] inbox    prefix of the channels
-- ARGV[2] worker
-- ARGV[3] machine  that it runs on
-- ARGV[4] info     its registry entry, JSON, with the state "drained"
--
-- Returns "drained" | "active" (it is not asked to drain any more)

-- @include emit_event
-- @include format_integer
-- @include is_late_registration
-- @include now_ms

if redis.call("HEXISTS", K.draining, worker) == 0 and not redis.call("ZSCORE", K.barred_machines, machine) then
  return "active"
end
local said = redis.call("HGET", K.workers, worker)
local has_reported = said and cjson.decode(said).state == "drained"
if is_late_registration(said, info) then return has_reported and "drained" or "active" end
if not has_reported then emit_event("worker", { worker }) end
redis.call("HSET", K.workers, worker, info)
redis.call("ZADD", K.worker_seen, format_integer(now_ms()), worker)
local holder = redis.call("HGET", K.planner, "holder")
if holder then redis.call("PUBLISH", inbox .. holder, "drained") end
return "drained"
