-- ack_removed_external_blobs: no change of state
--
-- Forgets blobs that have been removed from the user's store. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS external_blobs  zset  blob to be removed from the user's store -> when, ms
-- ARGV[1…] blobs
--
-- Returns "ok"

for _, blob in ipairs(ARGV) do redis.call("ZREM", K.external_blobs, "-" .. blob) end
return "ok"
