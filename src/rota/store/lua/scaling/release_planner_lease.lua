-- release_planner_lease: no change of state
--
-- Gives the planner lease back, so that a planner that stands by can take it. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS planner  hash  the planner lease: fence, holder, until; the latest decision recorded
-- ARGV[1] fence  of the lease
--
-- Returns "released" | "fenced" (another planner has the lease)

-- @include holds_planner_lease

if not holds_planner_lease(fence) then return "fenced" end
redis.call("HDEL", K.planner, "holder", "until")
return "released"
