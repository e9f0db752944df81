-- Wakes idle workers of a queue. A worker that no longer listens is skipped.
-- @include now_ms

-- How long after its last claim an idle worker may still be alive: it claims at least every 1.8 s with leases of
-- 4.5 s, and less often with longer ones (`max_poll_ms`).
local function claims_within_ms(worker)
  local lease_ms = tonumber(string.match(worker, " (%d+)$") or 4500)
  return lease_ms * 2 / 3 - 500
end

-- PUBLISH returns the number of subscribers; in a cluster, only those on this node. There a worker counts as awake if
-- it has claimed lately: if it has died since, another worker claims as soon.
local function was_received(listeners, worker, looked_at)
  return listeners > 0 or (C.IS_CLUSTER and now_ms() - looked_at < claims_within_ms(worker))
end

-- Wakes up to `count` idle workers of a queue. Returns how many.
local function wake_idle(waiting, name, count)
  local woken, tries = 0, count + 15
  while woken < count and tries > 0 do
    local worker, looked_at = unpack(redis.call("ZPOPMIN", waiting))
    if not worker then break end
    -- A claim that it left (`push_job_to_idle_worker`) may follow its name.
    local listeners = redis.call("PUBLISH", inbox .. (string.match(worker, "^%S+") or ""), "wake " .. name)
    if was_received(listeners, worker, looked_at) then woken = woken + 1 end
    tries = tries - 1
  end
  return woken
end

-- Wakes up to `count` idle workers of this queue.
local function wake_idle_workers(count)
  wake_idle(K.idle, queue, count)
end
