-- Returns the offset of a run in the task index: the position of its byte in its string.
-- @include format_run_number

local function byte_offset_in_task_index(run)
  local high, low = string.sub(run, 8, 8), string.sub(run, 9, 9)
  return 32 * string.find(DIGITS, high, 1, true) + string.find(DIGITS, low, 1, true) - 33
end
