-- take_operations: no change of state
--
-- Operations on many jobs that somebody must go on with, taken for a while: whoever took one and died is not waited for
-- longer than that. Sent again by the same driver, it says the same. Those that are no longer kept are forgotten.
--
-- flags: allow-oom
-- KEYS operation      prefix  of one hash per operation, `operation:<id>`
-- KEYS operations     zset    operation -> when it was asked for, ms
-- KEYS operation_due  zset    operation that is not over -> when somebody must go on with it
-- ARGV[1] driver   who asks
-- ARGV[2] hold_ms
-- ARGV[3] limit    how many at most
-- ARGV[4] wanted   id of the only one that is wanted, or ""
--
-- Returns their ids

-- @include now_ms
-- @include text_of

local now, taken = now_ms(), {}

local function is_gone(id)
  if redis.call("EXISTS", operation .. ":" .. id) == 1 then return false end
  redis.call("ZREM", operations, id)
  redis.call("ZREM", operation_due, id)
  return true
end

-- The oldest go first, as a rule.
for _, id in ipairs(redis.call("ZRANGE", operations, 0, 99)) do
  if not is_gone(id) then break end
end
local due = redis.call("ZRANGE", operation_due, 0, 99, "WITHSCORES")
for i = 1, #due, 2 do
  local id, key = due[i], operation .. ":" .. due[i]
  local is_mine = redis.call("HGET", key, "driver") == driver
  local may_take = (wanted == "" or wanted == id) and (is_mine or tonumber(due[i + 1]) <= now)
  if #taken < tonumber(limit) and may_take and not is_gone(id) then
    redis.call("ZADD", operation_due, text_of(now + hold_ms), id)
    redis.call("HSET", key, "driver", driver)
    taken[#taken + 1] = id
  end
end
return taken
