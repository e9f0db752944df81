-- check_task_index: no change of state
--
-- Checks parts of the task index of a queue: that each has the runs that are known, and that their number is right.
-- In the mode "repair" it removes those that are gone, and counts again. Harmless when sent again.
--
-- KEYS jobs              hash    run -> job record: head, options, task, arguments
-- KEYS task_index_sizes  hash    first seven characters of runs -> how many there are
-- KEYS task_index        prefix  `task_index:…`: numbers of the tasks of 1,024 runs, a byte each
-- ARGV[1] mode   "check" or "repair"
-- ARGV[2…] parts: the first seven characters of their runs
--
-- Returns three for each problem: the part, index, and what is wrong

-- @include format_integer
-- @include format_run_number
-- @include report_index_problem

local function digit(value) return string.sub(DIGITS, value + 1, value + 1) end

for at = 2, #ARGV do
  local part = ARGV[at]
  local key, count, gone = K.task_index .. ":" .. part, 0, {}
  local bytes = redis.call("GET", key) or ""
  for i = 1, #bytes do
    if string.byte(bytes, i) ~= 0 then
      local run = part .. digit(math.floor((i - 1) / 32)) .. digit((i - 1) % 32)
      if redis.call("HEXISTS", K.jobs, run) == 1 then count = count + 1 else gone[#gone + 1] = i - 1 end
    end
  end
  local text = format_integer(#gone) .. " of its runs are gone"
  if #gone > 0 and found_problem(part, "task_index", text) then
    for _, offset in ipairs(gone) do redis.call("SETRANGE", key, offset, "\0") end
  end
  local size = redis.call("HGET", K.task_index_sizes, part)
  if tonumber(size) ~= count then
    local is_right = mode == "check" and tonumber(size) == count + #gone
    if not is_right and found_problem(part, "task_index_sizes", "it has " .. format_integer(count) .. " runs") then
      if count == 0 then
        redis.call("UNLINK", key)
        redis.call("HDEL", K.task_index_sizes, part)
      else
        redis.call("HSET", K.task_index_sizes, part, format_integer(count))
      end
    end
  end
end
return problems
