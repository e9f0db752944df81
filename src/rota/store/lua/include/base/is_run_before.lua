-- Compares two runs by their bytes, which is the order of their numbers, and of sorted sets. The operator `<` would
-- use the locale of the server: in Estonian, z comes before t.
local function is_run_before(run, other)
  for at = 1, #run do
    local byte, other_byte = string.byte(run, at), string.byte(other, at)
    if byte ~= other_byte then return byte < (other_byte or 0) end
  end
  return #run < #other
end
