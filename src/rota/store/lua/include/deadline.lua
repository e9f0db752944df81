-- By when a run must have started for the first time, as its record says, ms; nil where it may start at any time.
-- @include parts

local function deadline_of(record)
  local head, options = split_record(record or "")
  local general = split_options(options)[1]
  local at = string.match(general, '"expires_at":(%d+)')
  if at then return tonumber(at) end
  local lasts, since = string.match(general, '"expires_ms":(%d+)'), string.match(head or "", " (%d+)$")
  return lasts and since and since + lasts or nil
end
