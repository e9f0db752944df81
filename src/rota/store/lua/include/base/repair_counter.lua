-- Replaces a damaged counter. Totals restart; the size of a chunk of the task index is counted; numbers that must
-- grow continue above all that are known.
-- @include format_integer
-- @include highest_run_number
-- @include now_ms
-- @include record_repair

local function repair_counter(key, field, amount, err)
  -- Any other error is not about the value: the command is sent again, to raise it.
  if not string.find(err, "integer") and not string.find(err, "overflow") then
    return redis.call("HINCRBY", key, field, amount)
  end
  local hash, sum = string.match(key, "[%w_]+$"), amount
  local prefix = string.sub(key, 1, -#hash - 1)
  record_repair(prefix, hash .. " " .. field, redis.call("HGET", key, field))
  if hash == "task_index_sizes" then
    -- New runs are in the index already; those that leave it still are.
    local _, count = string.gsub(redis.call("GET", prefix .. "task_index:" .. field) or "", "%Z", "")
    sum = amount > 0 and count or count + amount
  elseif field == "run" then
    sum = highest_run_number(prefix) + amount
  elseif field == "fence" or field == "outcome_number" then
    sum = now_ms() + amount
  end
  redis.call("HSET", key, field, format_integer(sum))
  return sum
end
