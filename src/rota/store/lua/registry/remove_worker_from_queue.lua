-- remove_worker_from_queue: no change of state
--
-- Removes a worker from a queue that it no longer serves: it is not woken again, and if there is work another worker
-- is woken instead. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS pending     zset  run -> score: priority, then the time it became due
-- KEYS idle        zset  worker that waits, and its next claim -> since
-- KEYS heartbeats  hash  worker -> its last heartbeat, ms
-- ARGV[1] queue
-- ARGV[2] inbox    prefix of the channels
-- ARGV[3] worker
--
-- Returns "left"

-- @include wake_idle_workers

redis.call("ZREM", K.idle, worker)
redis.call("HDEL", K.heartbeats, worker)
if redis.call("ZCARD", K.pending) > 0 then wake_idle_workers(1) end
return "left"
