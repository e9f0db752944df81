-- Adds new runs to the task index: `task_index` has the task number of each run as one byte, in a string per 1,024
-- runs, which share the first seven characters of their names; `task_index_sizes` counts the runs in each string.
-- @include assign_task_numbers
-- @include format_run_number
-- @include increment_counter

local CHUNK = 1024

-- Indexes runs with the numbers from `first` on, one of each of these tasks. The tasks have been counted.
local function add_new_runs_to_task_index(first, tasks)
  load_task_numbers(queue_counters, queue_counters.tasks)
  local at = 1
  while at <= #tasks do
    local offset = (first + at - 1) % CHUNK
    local amount = math.min(#tasks - at + 1, CHUNK - offset)
    local chunk, bytes = string.sub(format_run_number(first + at - 1), 1, 7), nil
    if #queue_counters.tasks == 1 then
      bytes = string.rep(string.char(queue_counters.number_of[tasks[1]]), amount)
    else
      local letters = {}
      for i = 1, amount do letters[i] = string.char(queue_counters.number_of[tasks[at + i - 1]]) end
      bytes = table.concat(letters)
    end
    redis.call("SETRANGE", queue_counters.prefix .. "task_index:" .. chunk, offset, bytes)
    increment_counter(queue_counters.prefix .. "task_index_sizes", chunk, amount)
    at = at + amount
  end
end
