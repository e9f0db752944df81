-- Adds one run to the task index, of this queue or of its failure queue; see `add_new_runs_to_task_index`.
-- @include assign_task_numbers
-- @include increment_counter
-- @include byte_offset_in_task_index

-- `counters` are those of this queue or of its failure queue.
local function add_run_to_task_index(run, task, counters)
  counters = counters or queue_counters
  load_task_numbers(counters, { task })
  local chunk = string.sub(run, 1, 7)
  local key, byte = counters.prefix .. "task_index:" .. chunk, string.char(counters.number_of[task])
  redis.call("SETRANGE", key, byte_offset_in_task_index(run), byte)
  increment_counter(counters.prefix .. "task_index_sizes", chunk, 1)
end
