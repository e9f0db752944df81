-- import_workflow: no change of state
--
-- Restores a workflow of an export, unless it is there or this export has restored it before. Harmless when sent
-- again.
--
-- KEYS workflow           prefix  `workflow:…`: one workflow: graph, state, steps
-- KEYS workflow_results   prefix  `workflow_results:…`: results of one workflow's steps and items
-- KEYS workflows          zset    workflow -> when it was opened, ms
-- KEYS workflow_due       zset    workflow that needs a decision -> when
-- KEYS stuck_workflows    zset    workflow that is held or parked -> since
-- KEYS active_workflows   prefix  `active_workflows:…`: workflows of one name that may run
-- KEYS waiting_workflows  prefix  `waiting_workflows:…`: workflows of one name that wait
-- KEYS imported           prefix  `imported:…`: run of an export -> the run that it was restored as
-- ARGV[1] export   id of the export
-- ARGV[2] id
-- ARGV[3] kind     "open", "stuck" or "ended"
-- ARGV[4] kept_ms  how long one that has ended is kept
-- ARGV[5] amount   how many of the following pairs belong to its record; the others are results
-- ARGV[6…] fields and values
--
-- Returns "imported" | "exists"

-- @include emit_event
-- @include format_integer
-- @include now_ms

local key, memory, now = K.workflow .. ":" .. id, K.imported .. ":" .. export, now_ms()
if redis.call("HSETNX", memory, id, id) == 0 then return "exists" end
redis.call("PEXPIRE", memory, C.REPAIRS_KEPT_MS)
if redis.call("EXISTS", key) == 1 then return "exists" end
local results = K.workflow_results .. ":" .. id
for at = 6, #ARGV, 2 do
  local is_field = (at - 6) / 2 < tonumber(amount)
  redis.call("HSET", is_field and key or results, ARGV[at], ARGV[at + 1])
end
local created_at, name, state, limit = unpack(redis.call("HMGET", key, "created_at", "name", "state", "limit"))
redis.call("ZADD", K.workflows, created_at or format_integer(now), id)
if kind == "ended" then
  redis.call("PEXPIRE", key, kept_ms)
  redis.call("PEXPIRE", results, kept_ms)
  redis.call("ZADD", K.workflow_due, format_integer(now + kept_ms + 1000), id)
else
  if kind == "stuck" then redis.call("ZADD", K.stuck_workflows, format_integer(now), id) end
  -- Its steps follow: a driver looks at it then.
  redis.call("ZADD", K.workflow_due, format_integer(now + 60000), id)
  if tonumber(limit or 0) > 0 and kind == "open" then
    local index = state == "waiting" and K.waiting_workflows or K.active_workflows
    redis.call("ZADD", index .. ":" .. name, format_integer(now), id)
  end
end
emit_event("workflow", { id })
return "imported"
