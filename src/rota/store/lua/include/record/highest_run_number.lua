-- Returns a number above that of every run of a queue, from the chunks of its task index and its prepared runs.
-- @include format_run_number

-- Runs that were made and have ended, or were deleted while they ran, may have had higher numbers.
local MARGIN = 2 ^ 20

local function highest_run_number(prefix)
  local highest = 0
  local function see(chunk)
    local number = 0
    for i = 1, 7 do
      number = 32 * number + (string.find(DIGITS, string.sub(chunk, i, i), 1, true) or 1) - 1
    end
    highest = math.max(highest, 1024 * (number + 1))
  end
  for _, chunk in ipairs(redis.call("HKEYS", prefix .. "task_index_sizes")) do see(chunk) end
  for _, run in ipairs(redis.call("ZRANGE", prefix .. "prepared", 0, -1)) do see(run) end
  return highest + MARGIN
end
