-- Formats a run number as nine characters of base 32, so that text order is number order. The upper eight digits
-- rarely change within a batch, so they are kept from one call to the next.
local DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
local upper_number, upper_text = -1, ""

local function format_run_number(number)
  local digit = number % 32
  local upper = (number - digit) / 32
  if upper ~= upper_number then
    local rest, text = upper, ""
    while rest > 0 do
      local value = rest % 32
      text = string.sub(DIGITS, value + 1, value + 1) .. text
      rest = (rest - value) / 32
    end
    upper_number, upper_text = upper, string.rep("0", 8 - #text) .. text
  end
  return upper_text .. string.sub(DIGITS, digit + 1, digit + 1)
end
