-- leave: no change of state
--
-- A worker leaves a queue for good: it is woken no more, and if there is work another one is woken in its place.
-- Harmless when sent again.
--
-- flags: allow-oom
-- KEYS pending  zset  run -> place
-- KEYS idle     zset  waiting workers
-- KEYS beats    hash  worker -> last heartbeat, ms
-- ARGV[1] queue
-- ARGV[2] inbox    prefix of the channels
-- ARGV[3] worker
--
-- Returns "left"

-- @include wake

redis.call("ZREM", idle, worker)
redis.call("HDEL", beats, worker)
if redis.call("ZCARD", pending) > 0 then wake(1) end
return "left"
