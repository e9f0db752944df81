-- Returns whether a job may take all blobs of a list, separated by spaces. A blob is stored before its job, and
-- expires unless a job takes it; then no other job can.
-- @include is_external_blob
-- @include queue_key_prefix

local function can_take_blobs(names)
  for blob in string.gmatch(names, "%S+") do
    if is_external_blob(blob) then
      if not redis.call("ZSCORE", queue_key_prefix .. "external_blobs", blob) then return false end
    elseif redis.call("PTTL", queue_key_prefix .. "blob:" .. blob) <= 0 then
      return false
    end
  end
  return true
end
