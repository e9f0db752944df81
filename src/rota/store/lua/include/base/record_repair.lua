-- Records that a damaged value was replaced, and what it was, for `rota doctor`: one damaged value must not stop a
-- queue. `prefix` is that of the keys of this queue or of its failure queue.
-- @include format_integer
-- @include now_ms

local function record_repair(prefix, name, value)
  local key = prefix .. "repairs"
  redis.call("HSET", key, name, format_integer(now_ms()) .. " " .. string.sub(value, 1, 100))
  redis.call("PEXPIRE", key, C.REPAIRS_KEPT_MS)
end
