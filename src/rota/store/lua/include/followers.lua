-- The same id again while its run is at work makes a follow-up, which is blocked until that run has ended.
-- `followers` has "follow-up flags" of such a run, `follows` the way back.
-- keys: ids, named, followers, follows

local function follower_of(run)
  return string.match(redis.call("HGET", followers, run) or "", "^(%S+) (%S*)$")
end

-- The follow-up goes its own way. Its id means the run before it again if that is what is left of it unfinished.
local function unfollow(run)
  local holder = redis.call("HGET", follows, run)
  if not holder then return end
  redis.call("HDEL", follows, run)
  redis.call("HDEL", followers, holder)
  local id = redis.call("HGET", named, run)
  if not id or redis.call("HGET", ids, id) ~= run then return end
  -- An id that was made up finds its run by itself.
  if redis.call("HGET", named, holder) == id then redis.call("HSET", ids, id, holder) else redis.call("HDEL", ids, id) end
end
