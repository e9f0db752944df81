-- Removes a run that never became visible.
-- keys: jobs, unborn, plans
-- @include forget_ties

local function drop(run)
  redis.call("ZREM", unborn, run)
  redis.call("HDEL", plans, run)
  redis.call("HDEL", jobs, run)
  forget_ties({ run })
end
