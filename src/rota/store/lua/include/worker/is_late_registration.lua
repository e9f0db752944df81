-- True when the stored registry entry of a worker is newer than `info`, or the same: a worker numbers its entries.
local function is_late_registration(stored, info)
  local number, latest = string.match(info, '"number":(%d+)'), string.match(stored or "", '"number":(%d+)')
  return number and latest and tonumber(number) <= tonumber(latest)
end
