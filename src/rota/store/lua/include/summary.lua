-- An error as one line of at most 500 bytes for the history: its type and message. "" when it cannot be read.
local function summary(err)
  local ok, decoded = pcall(cjson.decode, err)
  if not ok or type(decoded) ~= "table" then return "" end
  local kind = type(decoded.type) == "string" and decoded.type or ""
  local message = type(decoded.message) == "string" and decoded.message or ""
  local line, length = kind .. ": " .. message, 500
  -- A cut in the middle of a letter would make the whole history unreadable: its later bytes are 0x80 to 0xBF.
  while #line > length and length > 0 and bit.band(string.byte(line, length + 1), 0xC0) == 0x80 do length = length - 1 end
  return string.sub(line, 1, length)
end
