-- Wakes workers that wait. One that no longer listens is passed over.
-- keys: idle
-- @include now_ms

-- PUBLISH counts those who listen; in a cluster, those on this node alone. There a worker counts as awake that has looked
-- for work lately, as one that waits does every 1.8 s: should it have died since, somebody else looks as soon.
local function has_heard(listeners, looked_at)
  return listeners > 0 or (IS_CLUSTER and now_ms() - looked_at < 2500)
end

-- Up to `count` of those that wait for a queue; says how many.
local function rouse(waiting, name, count)
  local roused, tries = 0, count + 15
  while roused < count and tries > 0 do
    local worker, looked_at = unpack(redis.call("ZPOPMIN", waiting))
    if not worker then break end
    -- Behind its name stands the claim that it left (`hand_over`), if it did.
    if has_heard(redis.call("PUBLISH", inbox .. string.match(worker, "^%S+"), "wake " .. name), looked_at) then roused = roused + 1 end
    tries = tries - 1
  end
  return roused
end

-- Up to `count` of those that wait for this queue.
local function wake(count)
  rouse(idle, queue, count)
end
