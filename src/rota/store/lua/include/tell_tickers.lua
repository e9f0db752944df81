-- Tells workers of the queue that a schedule has changed, so that one of them sets its alarm. A few that wait, and a few
-- that are at work: each ticks for all. If none hears it, they look for themselves within seconds.
-- keys: idle, beats

local function tell_tickers(now)
  local told = redis.call("ZRANGE", idle, 0, 7)
  local heartbeats = redis.call("HGETALL", beats)
  for i = 1, #heartbeats, 2 do
    if #told < 16 and now - heartbeats[i + 1] < 5000 then told[#told + 1] = heartbeats[i] end
  end
  -- Behind the name of one that waits stands the claim that it left.
  for _, worker in ipairs(told) do redis.call("PUBLISH", inbox .. string.match(worker, "^%S+"), "ticks " .. queue) end
end
