-- What runs that have ended leave to others: their dependents hear of it, and the next of a lock's lane and the follow-up of
-- an id go on. Says how many became pending.
-- keys: blocked, locked, followers, follows
-- @include admit
-- @include bequeath
-- @include followers
-- @include lanes
-- @include place

local function hand_on(gone, outcome, now)
  bequeath(gone, outcome, now)
  local freed = 0
  if redis.call("EXISTS", locked) > 0 then freed = vacate_all(gone) end
  if redis.call("EXISTS", followers) > 0 then
    for _, run in ipairs(gone) do
      local following = follower_of(run)
      if following then
        redis.call("HDEL", followers, run)
        redis.call("HDEL", follows, following)
        local at = redis.call("ZSCORE", blocked, following)
        redis.call("ZREM", blocked, following)
        if at and admit(following, priority_of(at), due_of(at), now) == "pending" then freed = freed + 1 end
      end
    end
  end
  return freed
end
