-- Finds the task of a run in the task index, without reading its record: for scripts that look for a few tasks.
-- @include byte_offset_in_task_index
-- @include queue_key_prefix
-- @include task_of_job_record

-- Tasks of a queue beyond the hundredth share this number in the task index.
local SHARED_NUMBER = 1

-- Returns a function that returns the task of a run, or nil where it is none of these.
local function task_finder(tasks)
  local task_of_number, chunks = {}, {}
  local numbers = redis.call("HMGET", queue_key_prefix .. "task_numbers", unpack(tasks))
  for i, task in ipairs(tasks) do
    if numbers[i] then task_of_number[numbers[i]] = task end
  end
  return function(run)
    local chunk = string.sub(run, 1, 7)
    chunks[chunk] = chunks[chunk] or redis.call("GET", queue_key_prefix .. "task_index:" .. chunk) or ""
    local number = string.byte(chunks[chunk], byte_offset_in_task_index(run) + 1)
    if number and number > SHARED_NUMBER then return task_of_number[tostring(number)] end
    return task_of_job_record(redis.call("HGET", K.jobs, run) or "")
  end
end
