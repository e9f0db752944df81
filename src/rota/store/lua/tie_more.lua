-- tie_more: no change of state
--
-- More that a run comes after, while it is still invisible: one call can only take so many. Harmless when sent again.
--
-- KEYS unborn  zset  run -> since, ms
-- ARGV[1] run
-- ARGV[2] names  see `tie`
--
-- Returns "tied" | "missing"

-- @include now_ms
-- @include text_of
-- @include tie

if not redis.call("ZSCORE", unborn, run) then return "missing" end
redis.call("ZADD", unborn, "GT", text_of(now_ms()), run)
tie(run, names)
return "tied"
