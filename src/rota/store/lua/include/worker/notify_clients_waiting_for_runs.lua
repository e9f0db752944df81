-- Notifies the clients that wait for runs which have ended now. Returns the set of runs that had any.

local function notify_clients_waiting_for_runs(ended)
  local is_watched = {}
  for i, clients in ipairs(redis.call("HMGET", K.waiters, unpack(ended))) do
    if clients then
      for client in string.gmatch(clients, "%S+") do
        redis.call("PUBLISH", inbox .. client, "ended " .. queue .. " " .. ended[i])
      end
      redis.call("HDEL", K.waiters, ended[i])
      is_watched[ended[i]] = true
    end
  end
  return is_watched
end
