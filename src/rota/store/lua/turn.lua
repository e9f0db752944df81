-- turn: no change of state
--
-- A decision about a workflow has been carried out: its record says so, unless there has been news since it was read,
-- when the decision is made again. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS flow      prefix  of one hash per workflow, `flow:<id>`
-- KEYS flow_due  zset    workflow that somebody must see to -> when
-- ARGV[1] inbox    prefix of the channels
-- ARGV[2] id
-- ARGV[3] version  of the record that was read
-- ARGV[4] state    that it enters, or "" to stay
-- ARGV[5] next_ms  when somebody looks again, or "" if only news can change anything
-- ARGV[6…] fields of the record and their values
--
-- Returns the state it is in | "stale" | "missing"

-- @include emit
-- @include flow_state
-- @include now_ms
-- @include text_of

local key, now = flow .. ":" .. id, now_ms()
local known, current = unpack(redis.call("HMGET", key, "version", "state"))
if not current then return "missing" end
if (known or "0") ~= version then return "stale" end
if HAS_ENDED[current] then return current end
local is_news = state ~= "" or #ARGV > 5
if #ARGV > 5 then redis.call("HSET", key, unpack(ARGV, 6)) end
redis.call("HINCRBY", key, "version", 1)
if next_ms == "" then
  redis.call("ZREM", flow_due, id)
else
  redis.call("ZADD", flow_due, text_of(now + next_ms), id)
end
if state ~= "" then current = flow_state(id, state, now) end
if is_news then emit("workflow", { id }) end
return current
