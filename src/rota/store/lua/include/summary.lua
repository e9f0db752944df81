-- An error as one line of at most 500 bytes for the history: its type and message. "" when it cannot be read.
-- @include cut

local function summary(err)
  local ok, decoded = pcall(cjson.decode, err)
  if not ok or type(decoded) ~= "table" then return "" end
  local kind = type(decoded.type) == "string" and decoded.type or ""
  local message = type(decoded.message) == "string" and decoded.message or ""
  return cut(kind .. ": " .. message, 500)
end
