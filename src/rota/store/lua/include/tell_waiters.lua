-- Tells clients that wait for runs that they have ended. Says which of them anybody waited for.
-- keys: waiters

local function tell_waiters(ended)
  local is_watched = {}
  for i, clients in ipairs(redis.call("HMGET", waiters, unpack(ended))) do
    if clients then
      for client in string.gmatch(clients, "%S+") do
        redis.call("PUBLISH", inbox .. client, "ended " .. queue .. " " .. ended[i])
      end
      redis.call("HDEL", waiters, ended[i])
      is_watched[ended[i]] = true
    end
  end
  return is_watched
end
