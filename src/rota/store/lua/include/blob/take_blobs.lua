-- Takes blobs for a run: from then on they are removed with it. Those that it has already stay as they are.
-- @include is_external_blob

local function take_blobs(run, names)
  for blob in string.gmatch(names, "%S+") do
    if is_external_blob(blob) then
      redis.call("ZREM", K.external_blobs, blob)
    else
      redis.call("PERSIST", K.blob .. ":" .. blob)
    end
  end
  redis.call("HSET", K.blobs, run, names)
end
