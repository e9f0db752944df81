-- Wakes workers that wait. One that no longer listens is passed over.
-- keys: idle

-- Up to `count` of those that wait for a queue; says how many.
local function rouse(waiting, name, count)
  local roused, tries = 0, count + 15
  while roused < count and tries > 0 do
    local worker = redis.call("ZPOPMIN", waiting)[1]
    if not worker then break end
    if redis.call("PUBLISH", inbox .. worker, "wake " .. name) > 0 then roused = roused + 1 end
    tries = tries - 1
  end
  return roused
end

-- Up to `count` of those that wait for this queue.
local function wake(count)
  rouse(idle, queue, count)
end
