-- take_due_operations: no change of state
--
-- Takes unfinished bulk operations for a driver, for a limited time: after that another driver may take them. Sent
-- again by the same driver, it returns the same ones. Removes those that are no longer kept.
--
-- flags: allow-oom
-- KEYS operation      prefix  `operation:…`: one bulk operation and its progress
-- KEYS operations     zset    bulk operation -> when it was made
-- KEYS operation_due  zset    unfinished bulk operation -> when a driver may take it
-- ARGV[1] driver   the driver
-- ARGV[2] hold_ms
-- ARGV[3] limit    how many at most
-- ARGV[4] wanted   id of the only one to take, or ""
-- ARGV[5] number   of this call; what the driver saves later has higher ones
--
-- Returns their ids

-- @include format_integer
-- @include now_ms

local now, taken = now_ms(), {}

-- Returns true for an operation that has expired, and removes it.
local function is_gone(id)
  if redis.call("EXISTS", K.operation .. ":" .. id) == 1 then return false end
  redis.call("ZREM", K.operations, id)
  redis.call("ZREM", K.operation_due, id)
  return true
end

-- The oldest usually expire first.
for _, id in ipairs(redis.call("ZRANGE", K.operations, 0, 99)) do
  if not is_gone(id) then break end
end
local due = redis.call("ZRANGE", K.operation_due, 0, 99, "WITHSCORES")
for i = 1, #due, 2 do
  local id, key = due[i], K.operation .. ":" .. due[i]
  local is_mine = redis.call("HGET", key, "driver") == driver
  local may_take = (wanted == "" or wanted == id) and (is_mine or tonumber(due[i + 1]) <= now)
  if #taken < tonumber(limit) and may_take and not is_gone(id) then
    redis.call("ZADD", K.operation_due, format_integer(now + hold_ms), id)
    if not is_mine then redis.call("HSET", key, "driver", driver, "save_number", number) end
    taken[#taken + 1] = id
  end
end
return taken
