-- Notifies workers of the queue of a changed schedule: a few idle ones and a few busy ones, as each fires
-- schedules for all. If all pushes are lost, workers poll within seconds.

local function notify_workers_of_changed_schedule(now)
  local notified = redis.call("ZRANGE", K.idle, 0, 7)
  local heartbeats = redis.call("HGETALL", K.heartbeats)
  for i = 1, #heartbeats, 2 do
    local at = tonumber(heartbeats[i + 1]) or 0
    if #notified < 16 and now - at < 5000 then notified[#notified + 1] = heartbeats[i] end
  end
  -- An idle worker may have left a claim after its name.
  for _, member in ipairs(notified) do
    redis.call("PUBLISH", inbox .. string.match(member, "^%S+"), "schedules " .. queue)
  end
end
