-- Truncates a text to at most `length` bytes. A cut inside a character would make the text unreadable: its later
-- bytes are 0x80 to 0xBF.
local function truncate_utf8(text, length)
  while #text > length and length > 0 and bit.band(string.byte(text, length + 1), 0xC0) == 0x80 do
    length = length - 1
  end
  return string.sub(text, 1, length)
end
