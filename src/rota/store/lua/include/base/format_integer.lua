-- Formats a whole number as plain digits: tostring() would write a large one as 1.7e+12.
local function format_integer(number)
  return string.format("%d", number)
end
