-- Returns the blobs of the first list that are not in the second.

local function blobs_without(names, others)
  local left = {}
  for blob in string.gmatch(names, "%S+") do
    if not string.find(" " .. others .. " ", " " .. blob .. " ", 1, true) then left[#left + 1] = blob end
  end
  return table.concat(left, " ")
end
