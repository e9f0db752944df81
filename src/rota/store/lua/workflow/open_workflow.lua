-- open_workflow: no change of state
--
-- Opens a workflow: from now on its steps will be published, by its client or by any worker. It runs, or waits while
-- as many of its name run as its limit allows. Sent again, it returns the state of the workflow.
--
-- KEYS workflow      prefix  `workflow:…`: one workflow: graph, state, steps
-- KEYS workflows     zset    workflow -> when it was opened, ms
-- KEYS workflow_due  zset    workflow that needs a decision -> when
-- ARGV[1] inbox    prefix of the channels
-- ARGV[2] id
-- ARGV[3] look_ms  when a worker takes over if its client has not finished
-- ARGV[4] nonce    distinguishes this workflow from another with its id
-- ARGV[5…] fields of its record and their values, `name` and `limit` among them
--
-- Returns its state | "in_use" (another workflow has that id)

-- @include emit_event
-- @include format_integer
-- @include now_ms
-- @include set_workflow_state

local key, now = K.workflow .. ":" .. id, now_ms()
local state, first = unpack(redis.call("HMGET", key, "state", "nonce"))
if state then return first == nonce and state or "in_use" end
redis.call("HSET", key, "created_at", format_integer(now), "done", 0, "bad", 0, "nonce", nonce)
for at = 5, #ARGV, 2 do redis.call("HSET", key, ARGV[at], ARGV[at + 1]) end
redis.call("ZADD", K.workflows, format_integer(now), id)
redis.call("ZADD", K.workflow_due, format_integer(now + look_ms), id)
emit_event("workflow", { id })
return set_workflow_state(id, "running", now)
