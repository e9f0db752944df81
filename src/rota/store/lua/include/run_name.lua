-- A run number as nine characters of base 32, so that text order is number order.
-- The upper seven digits rarely change within a batch, so they are kept between calls.
local DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
local upper_number, upper_text = -1, ""

local function run_name(number)
  local upper = math.floor(number / 1024)
  if upper ~= upper_number then
    local rest, text = upper, ""
    for _ = 1, 7 do
      local digit = rest % 32
      text = string.sub(DIGITS, digit + 1, digit + 1) .. text
      rest = math.floor(rest / 32)
    end
    upper_number, upper_text = upper, text
  end
  local low = number % 1024
  local first, second = math.floor(low / 32) + 1, low % 32 + 1
  return upper_text .. string.sub(DIGITS, first, first) .. string.sub(DIGITS, second, second)
end
