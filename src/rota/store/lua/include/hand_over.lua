-- A job for a worker that waits goes along with its wake-up: the claim that the worker left when it began to wait is
-- carried out here, and saves it a round trip. It is remembered as any claim is, so that a worker which does not hear of it,
-- or not in time, asks for the same and gets the same run.
-- keys: meta, idle, pending, expiring
-- @include lease
-- @include replay
-- @include wake

-- One that has not looked for so long may be frozen: its lease would keep the job from others.
local LOOKED_WITHIN_MS = 2500
-- What is longer waits in the server until the worker asks for it.
local LONGEST_PUSH = 65536

-- True when it has got the only run there is. Whatever else there may be to do is for a claim.
local function is_handed_over(member, looked_at, now)
  local owner, number, token, lasts_ms = string.match(member, "^(%S+) (%d+) (%S+) (%d+)$")
  if IS_CLUSTER or not owner or now - looked_at > LOOKED_WITHIN_MS then return false end
  if redis.call("ZCARD", pending) ~= 1 or redis.call("EXISTS", expiring) > 0 or redis.call("HGET", meta, "is_paused") then return false end
  if redis.call("PUBSUB", "NUMSUB", inbox .. owner)[2] == 0 then return false end
  redis.call("ZREM", idle, member)
  local fence, claimed, counts, bodies = lease(redis.call("ZPOPMIN", pending), owner, token, now, lasts_ms)
  -- As `remember` does, among the calls of that worker.
  local outcome = string.sub(idle, 1, -5) .. "calls:" .. owner .. ":claim"
  redis.call("SET", outcome, number .. ":" .. fence .. " " .. claimed[1], "PX", REPLAY_WINDOW_MS)
  local record, message = bodies[1] or "", "wake " .. queue
  if #record <= LONGEST_PUSH then
    message = table.concat({ "job", queue, number, fence .. "." .. token, claimed[1], counts[1] }, " ") .. "\n" .. record
  end
  redis.call("PUBLISH", inbox .. owner, message)
  return true
end

-- To the worker that has waited longest, if one does; where that cannot be, it is woken.
local function hand_over(now)
  local member, looked_at = unpack(redis.call("ZRANGE", idle, 0, 0, "WITHSCORES"))
  if member and not is_handed_over(member, looked_at, now) then wake(1) end
end
