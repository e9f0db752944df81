-- Summarizes an error for the history: its type and message in at most 500 bytes. "" if it cannot be read.
-- @include truncate_utf8

local function summarize_error_for_history(err)
  local ok, decoded = pcall(cjson.decode, err)
  if not ok or type(decoded) ~= "table" then return "" end
  local kind = type(decoded.type) == "string" and decoded.type or ""
  local message = type(decoded.message) == "string" and decoded.message or ""
  return truncate_utf8(kind .. ": " .. message, 500)
end
