-- True when `fence` is that of the planner lease. It stays so until another planner takes the lease, also when the
-- lease has run out: nothing can have been decided by another planner in between.

local function holds_planner_lease(fence)
  return redis.call("HGET", K.planner, "fence") == fence
end
