-- Every claim and heartbeat leaves the time here. A hole in these ticks means that the server was away, or that
-- its clock jumped: then nobody's lease is reaped until it has answered for one whole lease again, so that workers
-- that are alive can say so first. Ticks come at least every 1.8 s while any worker serves the queue. A shorter hole is
-- not noticed, and must leave a worker the time to renew its lease: docs/decisions/0005 has the arithmetic.
-- keys: meta
-- @include text_of

-- One that comes within TICK_STEP_MS of the last is not written down.
local TICK_GAP_MS, TICK_STEP_MS = 2200, 100

-- True when leases may be reaped, and the time from which they may; and whether the queue is paused.
local function tick(now, lease_ms)
  local last, grace_until, is_paused = unpack(redis.call("HMGET", meta, "tick", "grace_until", "is_paused"))
  local since = last and now - last
  if since and (since > TICK_GAP_MS or since < -1000) then
    grace_until = now + lease_ms
    redis.call("HSET", meta, "tick", text_of(now), "grace_until", text_of(grace_until))
    return false, grace_until, is_paused
  end
  if not since or since >= TICK_STEP_MS or since < 0 then redis.call("HSET", meta, "tick", text_of(now)) end
  grace_until = tonumber(grace_until or 0)
  return now >= grace_until, grace_until, is_paused
end
