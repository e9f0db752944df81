-- take_removable_external_blobs: no change of state
--
-- Gives a worker the blobs that are due to be removed from the user's store. From then on no job can take them.
-- Unless `ack_removed_external_blobs` follows, they are given out again after a minute. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS external_blobs  zset  blob to be removed from the user's store -> when, ms
-- ARGV[1] limit
--
-- Returns the blobs

-- @include format_integer
-- @include now_ms

local now, taken = now_ms(), {}
local due = redis.call("ZRANGE", K.external_blobs, "-inf", format_integer(now), "BYSCORE", "LIMIT", 0, limit)
for i, member in ipairs(due) do
  local blob = string.match(member, "^%-?(.*)$")
  redis.call("ZREM", K.external_blobs, member)
  redis.call("ZADD", K.external_blobs, format_integer(now + 60000), "-" .. blob)
  taken[i] = blob
end
return taken
