-- Where the byte of a run is in the column of its chunk.
-- @include run_name

local function offset_of(run)
  local high, low = string.sub(run, 8, 8), string.sub(run, 9, 9)
  return 32 * string.find(DIGITS, high, 1, true) + string.find(DIGITS, low, 1, true) - 33
end
