-- The handler of a cancelled or deleted run has stopped, or its lease has run out. Its id and its lock are free now, and
-- its dependents are told; of a run that is forgotten otherwise, see `forget`, the rest goes too. Later reports say
-- nothing new.
-- keys: jobs, runs, ids, named, stopping
-- @include depart
-- @include forget_ties

local function release(run, now)
  if redis.call("ZREM", stopping, run) == 0 then return 0 end
  local freed = depart({ run }, "cancelled", now)
  if redis.call("HEXISTS", jobs, run) == 0 then
    forget_ties({ run })
    redis.call("HDEL", runs, run)
    local id = redis.call("HGET", named, run)
    if id then
      redis.call("HDEL", named, run)
      if redis.call("HGET", ids, id) == run then redis.call("HDEL", ids, id) end
    end
  end
  return freed
end
