-- A text of at most `length` bytes. A cut in the middle of a letter would make what holds it unreadable: its later bytes are
-- 0x80 to 0xBF.
local function cut(text, length)
  while #text > length and length > 0 and bit.band(string.byte(text, length + 1), 0xC0) == 0x80 do length = length - 1 end
  return string.sub(text, 1, length)
end
