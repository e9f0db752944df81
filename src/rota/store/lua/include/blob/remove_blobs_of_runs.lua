-- Removes the blobs of runs that are removed.
-- @include now_ms
-- @include queue_key_prefix
-- @include remove_blobs

local function remove_blobs_of_runs(gone)
  for _, names in ipairs(redis.call("HMGET", queue_key_prefix .. "blobs", unpack(gone))) do
    if names then remove_blobs(names, now_ms()) end
  end
  redis.call("HDEL", queue_key_prefix .. "blobs", unpack(gone))
end
