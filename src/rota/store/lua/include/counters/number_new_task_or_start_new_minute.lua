-- Gives a number to a task that is new in its queue, and stores the last minute if a new one begins: what a script
-- that counts for itself needs now and then. Returns the number of the task.
-- @include assign_task_numbers
-- @include format_integer
-- @include repair_last_minute
-- @include store_counts_of_last_minute_and_hour

local function number_new_task_or_start_new_minute(task, this_minute)
  load_task_numbers(queue_counters, { task })
  if queue_counters.last_minute > this_minute + 1440 then
    queue_counters.last_minute = repair_last_minute(queue_counters.prefix, format_integer(queue_counters.last_minute))
  end
  if this_minute > queue_counters.last_minute then
    store_counts_of_last_minute_and_hour(queue_counters, this_minute)
  end
  return queue_counters.number_of[task]
end
