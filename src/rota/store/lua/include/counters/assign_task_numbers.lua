-- Assigns each task of a queue a number, for its counters and its task index. Beyond a hundred tasks, new ones share
-- the number of "other".
-- @include queue_key_prefix
-- @rare repair_last_minute
-- @rare repair_task_number

local OTHER = 1

local function open_counters(prefix)
  return { prefix = prefix, number_of = {}, counts = {}, tasks = {} }
end

local queue_counters = open_counters(queue_key_prefix)

-- Loads the numbers of these tasks, and `last_minute`: the minute in which something was last counted.
local function load_task_numbers(counters, tasks)
  local unknown = {}
  for _, task in ipairs(tasks) do
    if not counters.number_of[task] then unknown[#unknown + 1] = task end
  end
  if #unknown == 0 and counters.last_minute then return end
  -- No task has a space in its name.
  local key = counters.prefix .. "task_numbers"
  local found = redis.call("HMGET", key, " minute", unpack(unknown))
  counters.last_minute = tonumber(string.match(found[1] or "0", "^%d+$"))
    or repair_last_minute(counters.prefix, found[1])
  for i, task in ipairs(unknown) do
    local number = tonumber(found[i + 1] or nil)
    if found[i + 1] and not (number and number >= OTHER and number <= C.TASK_NUMBERS and number % 1 == 0) then
      number = repair_task_number(counters.prefix, task, found[i + 1])
    elseif not number then
      local known = redis.call("HLEN", key) - redis.call("HEXISTS", key, " minute")
      number = known + OTHER + 1
      if number <= C.TASK_NUMBERS then redis.call("HSET", key, task, number) else number = OTHER end
    end
    counters.number_of[task] = number
  end
end
