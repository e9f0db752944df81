-- Removes a prepared run that was not published.
-- @include remove_dependency_data

local function remove_prepared_run(run)
  redis.call("ZREM", K.prepared, run)
  redis.call("HDEL", K.prepared_plans, run)
  redis.call("HDEL", K.jobs, run)
  remove_dependency_data({ run })
end
