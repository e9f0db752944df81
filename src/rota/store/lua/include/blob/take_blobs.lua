-- Takes blobs for a run: from then on they are removed with it. Those that it has already stay as they are.
-- @include is_external_blob
-- @include queue_key_prefix

local function take_blobs(run, names)
  for blob in string.gmatch(names, "%S+") do
    if is_external_blob(blob) then
      redis.call("ZREM", queue_key_prefix .. "external_blobs", blob)
    else
      redis.call("PERSIST", queue_key_prefix .. "blob:" .. blob)
    end
  end
  redis.call("HSET", queue_key_prefix .. "blobs", run, names)
end
