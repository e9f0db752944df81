-- A whole number as plain digits: tostring() would write a large one as 1.7e+12.
local function text_of(number)
  return string.format("%d", number)
end
