-- Removes blobs: those in the server at once; those in the user's store are left to a worker.
-- @include format_integer
-- @include is_external_blob

local function remove_blobs(names, now)
  for blob in string.gmatch(names, "%S+") do
    if is_external_blob(blob) then
      redis.call("ZADD", K.external_blobs, format_integer(now), blob)
    else
      redis.call("UNLINK", K.blob .. ":" .. blob)
    end
  end
end
