-- Returns whether a job may take all blobs of a list, separated by spaces. A blob is stored before its job, and
-- expires unless a job takes it; then no other job can.
-- @include is_external_blob

local function can_take_blobs(names)
  for blob in string.gmatch(names, "%S+") do
    if is_external_blob(blob) then
      if not redis.call("ZSCORE", K.external_blobs, blob) then return false end
    elseif redis.call("PTTL", K.blob .. ":" .. blob) <= 0 then
      return false
    end
  end
  return true
end
