-- The handler of a cancelled or deleted run has stopped, or its lease has run out. Its id is free now; of a run that
-- is forgotten otherwise, see `forget`, the rest goes too.
-- keys: jobs, runs, ids, named, stopping

local function release(run)
  redis.call("ZREM", stopping, run)
  if redis.call("HEXISTS", jobs, run) > 0 then return end
  redis.call("HDEL", runs, run)
  local id = redis.call("HGET", named, run)
  if id then
    redis.call("HDEL", named, run)
    if redis.call("HGET", ids, id) == run then redis.call("HDEL", ids, id) end
  end
end
