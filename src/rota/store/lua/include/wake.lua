-- Wakes up to `count` workers that wait for this queue. One that no longer listens is passed over.
-- keys: idle

local function wake(count)
  local tries = count + 15
  while count > 0 and tries > 0 do
    local worker = redis.call("ZPOPMIN", idle)[1]
    if not worker then return end
    if redis.call("PUBLISH", inbox .. worker, "wake " .. queue) > 0 then count = count - 1 end
    tries = tries - 1
  end
end
