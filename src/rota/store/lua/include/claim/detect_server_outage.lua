-- Detects outages of the server, after which expired leases are not reaped at once. Every claim and heartbeat stores
-- the time; a gap means that the server was away or its clock jumped. Then no lease is reaped until the server has
-- answered for one whole lease, so that live workers can renew theirs. While a worker serves the queue, calls come at
-- least every 1.8 s, unless settings of the namespace say otherwise. A shorter gap goes unnoticed, and must leave a
-- worker the time to renew its lease: docs/decisions/0005 has the arithmetic.
-- @include format_integer
-- @rare repair_outage_fields

-- A call within SEEN_STEP_MS of the last stored one is not stored.
local SEEN_STEP_MS = 100

-- Returns whether leases may be reaped, the time from which they may, whether the queue is paused, the length of its
-- longest job record, if it has had a long one, and whether any of its tasks is paused.
local function record_server_seen(now, lease_ms, outage_gap_ms)
  local last, grace_until, is_paused, longest, has_paused_tasks = unpack(
    redis.call("HMGET", K.meta, "server_seen", "grace_until", "is_paused", "longest_job", "has_paused_tasks")
  )
  -- A damaged length: any record may be long.
  longest = longest and (tonumber(string.match(longest, "^%d+$")) or C.CALL_BYTES)
  if not string.find((last or "0") .. " " .. (grace_until or "0"), "^%d+ %d+$") then
    last = repair_outage_fields(last, grace_until)
  end
  local since = last and now - last
  if since and (since > outage_gap_ms or since < -1000) then
    grace_until = now + lease_ms
    redis.call("HSET", K.meta, "server_seen", format_integer(now), "grace_until", format_integer(grace_until))
    return false, grace_until, is_paused, longest, has_paused_tasks
  end
  if not since or since >= SEEN_STEP_MS or since < 0 then
    redis.call("HSET", K.meta, "server_seen", format_integer(now))
  end
  grace_until = tonumber(grace_until or 0)
  return now >= grace_until, grace_until, is_paused, longest, has_paused_tasks
end
