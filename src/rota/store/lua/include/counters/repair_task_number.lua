-- Replaces the damaged number of a task by the first that no other task has: as a rule the one that it had.
-- @include record_repair

local function repair_task_number(prefix, task, value)
  local key, is_taken = prefix .. "task_numbers", {}
  record_repair(prefix, "task_numbers " .. task, value)
  for _, number in ipairs(redis.call("HVALS", key)) do is_taken[number] = true end
  for number = 2, C.TASK_NUMBERS do
    if not is_taken[tostring(number)] then
      redis.call("HSET", key, task, number)
      return number
    end
  end
  redis.call("HDEL", key, task)
  return 1
end
