-- save_workflow_decision: no change of state
--
-- Stores that a decision about a workflow was carried out, unless its record has changed since it was read: then the
-- decision is made again. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS workflow      prefix  `workflow:…`: one workflow: graph, state, steps
-- KEYS workflow_due  zset    workflow that needs a decision -> when
-- ARGV[1] inbox    prefix of the channels
-- ARGV[2] id
-- ARGV[3] version  of the record that was read
-- ARGV[4] state    new state, or "" to keep it
-- ARGV[5] next_ms  when it is due again, or "" if only an outcome can change it
-- ARGV[6…] fields of the record and their values
--
-- Returns the state it is in | "stale" | "missing"

-- @include emit_event
-- @include format_integer
-- @include now_ms
-- @include set_workflow_state

local key, now = K.workflow .. ":" .. id, now_ms()
local known, current = unpack(redis.call("HMGET", key, "version", "state"))
if not current then return "missing" end
if (known or "0") ~= version then return "stale" end
if HAS_ENDED[current] then return current end
local has_changed = state ~= "" or #ARGV > 5
if #ARGV > 5 then redis.call("HSET", key, unpack(ARGV, 6)) end
add_to_workflow_field(key, "version", 1)
if next_ms == "" then
  redis.call("ZREM", K.workflow_due, id)
else
  redis.call("ZADD", K.workflow_due, format_integer(now + next_ms), id)
end
if state ~= "" then current = set_workflow_state(id, state, now) end
if has_changed then emit_event("workflow", { id }) end
return current
