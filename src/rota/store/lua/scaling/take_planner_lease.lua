-- take_planner_lease: no change of state
--
-- Takes or renews the planner lease. Of all planners of a namespace one holds it; the others stand by, and are listed
-- for as long as they keep trying. A new holder gets a new fence. A planner numbers these calls: one that is sent
-- again, or arrives after the lease was given back, changes nothing.
--
-- KEYS planner           hash  the planner lease: fence, holder, until; the latest decision recorded
-- KEYS standby_planners  zset  planner that stands by -> until when it counts, ms
-- ARGV[1] holder   the planner
-- ARGV[2] ttl_ms   how long it is held without a renewal
-- ARGV[3] number   of this call; grows with each call of the planner
-- ARGV[4] info     about the planner, JSON: host, provider, policy, settings
--
-- Returns the fence, "" if another planner holds it; the holder; and what that said about itself

-- @include format_integer
-- @include is_late_planner_call
-- @include now_ms

local now = now_ms()
local current, valid_until, said = unpack(redis.call("HMGET", K.planner, "holder", "until", "info"))
redis.call("ZREMRANGEBYSCORE", K.standby_planners, "-inf", format_integer(now))
local expiry = format_integer(now + ttl_ms)
if current and current ~= holder and tonumber(valid_until) > now then
  redis.call("ZADD", K.standby_planners, expiry, holder)
  return { "", current, said }
end
if is_late_planner_call("take", holder, number) then
  return { current == holder and redis.call("HGET", K.planner, "fence") or "", current or "", said or "" }
end
redis.call("ZREM", K.standby_planners, holder)
if current ~= holder then redis.call("HINCRBY", K.planner, "fence", 1) end
redis.call("HSET", K.planner, "holder", holder, "until", expiry, "info", info)
return { redis.call("HGET", K.planner, "fence"), holder, info }
