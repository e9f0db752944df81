-- take_due_workflows: no change of state
--
-- Takes workflows that need a decision, for a limited time: after that another worker may take them. Removes those
-- that are no longer kept. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS workflow_due  zset    workflow that needs a decision -> when
-- KEYS workflow      prefix  `workflow:…`: one workflow: graph, state, steps
-- KEYS workflows     zset    workflow -> when it was opened, ms
-- ARGV[1] limit    how many
-- ARGV[2] hold_ms
--
-- Returns their ids

-- @include format_integer
-- @include now_ms

local now, taken = now_ms(), {}
local due = redis.call("ZRANGE", K.workflow_due, "-inf", format_integer(now), "BYSCORE", "LIMIT", 0, limit)
for _, id in ipairs(due) do
  if redis.call("EXISTS", K.workflow .. ":" .. id) > 0 then
    redis.call("ZADD", K.workflow_due, format_integer(now + hold_ms), id)
    taken[#taken + 1] = id
  else
    redis.call("ZREM", K.workflow_due, id)
    redis.call("ZREM", K.workflows, id)
  end
end
return taken
