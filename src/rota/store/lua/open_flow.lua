-- open_flow: no change of state
--
-- Commits a workflow: from now on all its steps become visible, whoever has to see to that. It runs, or waits for a
-- place where its name has as many as it may. Sent again, it says how the workflow stands.
--
-- KEYS flow      prefix  of one hash per workflow, `flow:<id>`
-- KEYS flows     zset    workflow -> when it was committed, ms
-- KEYS flow_due  zset    workflow that somebody must see to -> when
-- ARGV[1] inbox    prefix of the channels
-- ARGV[2] id
-- ARGV[3] look_ms  when somebody else looks whether its maker got on with it
-- ARGV[4…] fields of its record and their values, `name` and `limit` among them
--
-- Returns its state

-- @include flow_state
-- @include now_ms
-- @include text_of

local key, now = flow .. ":" .. id, now_ms()
local state = redis.call("HGET", key, "state")
if state then return state end
redis.call("HSET", key, "created_at", text_of(now), "done", 0, "bad", 0, unpack(ARGV, 4))
redis.call("ZADD", flows, text_of(now), id)
-- Those of the last day are listed; an ended one is gone by then, and others are found by whoever holds them.
redis.call("ZADD", flow_due, text_of(now + look_ms), id)
return flow_state(id, "running", now)
