-- save_launch: no change of state
--
-- Stores the intent to launch machines before the provider is called, and the machines afterwards; without a value,
-- removes it. A planner that takes over repeats an unfinished launch under the same token. Harmless when sent again.
--
-- KEYS scaling_launches  hash  token of a launch -> how many machines, since when, and which
-- ARGV[1] fence  of the planner lease
-- ARGV[2] token
-- ARGV[3] value  JSON; "" removes it
--
-- Returns "saved" | "fenced" (another planner has the lease)

-- @include holds_planner_lease

if not holds_planner_lease(fence) then return "fenced" end
if value == "" then
  redis.call("HDEL", K.scaling_launches, token)
else
  redis.call("HSET", K.scaling_launches, token, value)
end
return "saved"
