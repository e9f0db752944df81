-- Makes one run the follow-up of another, which is at work; see `followers`.
-- keys: followers, follows

local function follow(holder, run, flags)
  redis.call("HSET", followers, holder, run .. " " .. flags)
  redis.call("HSET", follows, run, holder)
end
