-- append_blob_chunk: no change of state
--
-- Stores a chunk of a blob before its job is enqueued. A blob that no job takes is removed after an hour, so a
-- producer that is killed leaves nothing. Sent again, a chunk is not appended twice.
--
-- KEYS blob  prefix  `blob:…`: chunks of one blob
-- ARGV[1] blob
-- ARGV[2] index   of the chunk; 0 for the first
-- ARGV[3] chunk
--
-- Returns "ok" | "taken" (a job has the blob already) | "missing" (earlier chunks are gone)

local key, number = K.blob .. ":" .. blob, tonumber(index)
local size = redis.call("LLEN", key)
if size > 0 and redis.call("PTTL", key) < 0 then return "taken" end
if size < number then return "missing" end
if size == number then redis.call("RPUSH", key, chunk) end
redis.call("PEXPIRE", key, C.BLOB_UNTAKEN_MS)
return "ok"
