-- reserve_external_blob: no change of state
--
-- Notes a blob that is about to be written to, or is being written to, the user's store. Unless a job takes it within
-- an hour, a worker removes it there. Harmless when sent again.
--
-- KEYS external_blobs  zset  blob to be removed from the user's store -> when, ms
-- ARGV[1] blob
--
-- Returns "ok"

-- @include format_integer
-- @include now_ms

redis.call("ZADD", K.external_blobs, format_integer(now_ms() + C.BLOB_UNTAKEN_MS), blob)
return "ok"
