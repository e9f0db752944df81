-- Pushes a job to an idle worker along with its wake-up: carries out the claim that the worker left when it became
-- idle, which saves a round trip. It is remembered as any claim is, so a worker that misses the push claims again and
-- gets the same run.
-- @include lease_runs_to_worker
-- @include queue_key_prefix
-- @include wake_idle_workers

-- A longer record is not pushed: the worker claims it.
local LONGEST_PUSH = 65536

-- Leases the only pending run to the worker and returns true. Anything else is left to a claim.
local function is_pushed(member, looked_at, now)
  local owner, number, token, lasts_ms = string.match(member, "^(%S+) (%d+) (%S+) (%d+)$")
  -- A worker that has not claimed for so long may be frozen: its lease would keep the job from others.
  if C.IS_CLUSTER or not owner or now - looked_at > claims_within_ms(member) then return false end
  if redis.call("ZCARD", K.pending) ~= 1 or redis.call("EXISTS", K.expiring) > 0 then return false end
  local is_paused, has_paused_tasks = unpack(redis.call("HMGET", K.meta, "is_paused", "has_paused_tasks"))
  if is_paused or has_paused_tasks then return false end
  if redis.call("PUBSUB", "NUMSUB", inbox .. owner)[2] == 0 then return false end
  redis.call("ZREM", K.idle, member)
  local popped = redis.call("ZPOPMIN", K.pending)
  local fence, claimed, counts, bodies = lease_runs_to_worker(popped, owner, token, now, lasts_ms)
  -- As `remember_reply` does, for the calls of that worker.
  local outcome = queue_key_prefix .. "last_reply:" .. owner .. ":claim"
  redis.call("SET", outcome, number .. ":" .. fence .. " " .. claimed[1], "PX", C.REPLY_KEPT_MS)
  local record, message = bodies[1] or "", "wake " .. queue
  if #record <= LONGEST_PUSH then
    local words = { "job", queue, number, fence .. "." .. token, claimed[1], counts[1] }
    message = table.concat(words, " ") .. "\n" .. record
  end
  redis.call("PUBLISH", inbox .. owner, message)
  return true
end

-- Pushes to the worker that has been idle longest, if there is one; if it cannot, it wakes one.
local function push_job_to_idle_worker(now)
  local member, looked_at = unpack(redis.call("ZRANGE", K.idle, 0, 0, "WITHSCORES"))
  if member and not is_pushed(member, looked_at, now) then wake_idle_workers(1) end
end
