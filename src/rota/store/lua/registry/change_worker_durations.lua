-- change_worker_durations: no change of state
--
-- Replaces the durations that all workers of the namespace use, if they are still those that the caller has read.
-- Workers read them every 5 s. Sent again with the same token, it changes nothing.
--
-- KEYS settings  hash  durations that were set; version, previous_lease_ms, changed_at
-- ARGV[1] version            of the settings that the caller has read; 0 for none
-- ARGV[2] previous_lease_ms  the lease in force before this change
-- ARGV[3] lease_ms           "" for the default, as the following ones
-- ARGV[4] heartbeat_ms
-- ARGV[5] poll_ms
-- ARGV[6] grace_ms
--
-- Returns "changed" | "conflict" (another caller has changed them)

-- @include format_integer
-- @include now_ms
-- @include run_once_per_token

local SEEN_BY_ALL_MS = 60000

return run_once_per_token(function()
  local now = now_ms()
  local stored, earlier, changed_at =
    unpack(redis.call("HMGET", K.settings, "version", "previous_lease_ms", "changed_at"))
  if (stored or "0") ~= version then return "conflict" end
  -- Some workers may not have read that change yet, and use the lease before it.
  if changed_at and now - changed_at < SEEN_BY_ALL_MS then
    previous_lease_ms = format_integer(math.min(previous_lease_ms, earlier))
  end
  redis.call(
    "HSET", K.settings, "version", format_integer(version + 1), "previous_lease_ms", previous_lease_ms,
    "lease_ms", lease_ms, "heartbeat_ms", heartbeat_ms, "poll_ms", poll_ms, "grace_ms", grace_ms,
    "changed_at", format_integer(now)
  )
  return "changed"
end)
