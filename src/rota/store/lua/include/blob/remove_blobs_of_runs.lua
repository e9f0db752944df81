-- Removes the blobs of runs that are removed.
-- @include now_ms
-- @include remove_blobs

local function remove_blobs_of_runs(gone)
  for _, names in ipairs(redis.call("HMGET", K.blobs, unpack(gone))) do
    if names then remove_blobs(names, now_ms()) end
  end
  redis.call("HDEL", K.blobs, unpack(gone))
end
