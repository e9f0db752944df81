-- save_launch: no change of state
--
-- Stores the intent to launch machines before the provider is called, and the machines afterwards; without a value,
-- removes it. A planner that takes over repeats an unfinished launch under the same token. A planner numbers these
-- calls: one that is sent again, or arrives late, changes nothing.
--
-- KEYS scaling_launches  hash  token of a launch -> how many machines, since when, and which
-- ARGV[1] fence   of the planner lease
-- ARGV[2] number  of this call; grows with each call of a holder
-- ARGV[3] token
-- ARGV[4] value   JSON; "" removes it
--
-- Returns "saved" | "fenced" (another planner has the lease)

-- @include holds_planner_lease
-- @include is_late_planner_call

if not holds_planner_lease(fence) then return "fenced" end
if is_late_planner_call("launch", fence, number) then return "saved" end
if value == "" then
  redis.call("HDEL", K.scaling_launches, token)
else
  redis.call("HSET", K.scaling_launches, token, value)
end
return "saved"
