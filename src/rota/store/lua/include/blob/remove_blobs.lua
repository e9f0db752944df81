-- Removes blobs: those in the server at once; those in the user's store are left to a worker.
-- @include format_integer
-- @include is_external_blob
-- @include queue_key_prefix

local function remove_blobs(names, now)
  for blob in string.gmatch(names, "%S+") do
    if is_external_blob(blob) then
      redis.call("ZADD", queue_key_prefix .. "external_blobs", format_integer(now), blob)
    else
      redis.call("UNLINK", queue_key_prefix .. "blob:" .. blob)
    end
  end
end
