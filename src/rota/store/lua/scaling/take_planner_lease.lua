-- take_planner_lease: no change of state
--
-- Takes or renews the planner lease. Of all planners of a namespace one holds it; the others stand by. A new holder
-- gets a new fence. A planner numbers these calls: one that is sent again, or arrives after the lease was given back,
-- changes nothing.
--
-- KEYS planner  hash  the planner lease: fence, holder, until; the latest decision recorded
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
if current and current ~= holder and tonumber(valid_until) > now then return { "", current, said } end
if is_late_planner_call("take", holder, number) then
  return { current == holder and redis.call("HGET", K.planner, "fence") or "", current or "", said or "" }
end
if current ~= holder then redis.call("HINCRBY", K.planner, "fence", 1) end
redis.call("HSET", K.planner, "holder", holder, "until", format_integer(now + ttl_ms), "info", info)
return { redis.call("HGET", K.planner, "fence"), holder, info }
