-- Replaces a damaged number of the last counted minute by this minute: what was counted since then counts for it.
-- @include format_integer
-- @include now_ms
-- @include record_repair

local function repair_last_minute(prefix, value)
  local minute = math.floor(now_ms() / 60000)
  record_repair(prefix, "task_numbers minute", value)
  redis.call("HSET", prefix .. "task_numbers", " minute", format_integer(minute))
  return minute
end
