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
-- ARGV[4] nonce    tells this workflow from another one of its id
-- ARGV[5…] fields of its record and their values, `name` and `limit` among them
--
-- Returns its state | "in_use" (there is another one of that id)

-- @include emit
-- @include flow_state
-- @include now_ms
-- @include text_of

local key, now = flow .. ":" .. id, now_ms()
local state, first = unpack(redis.call("HMGET", key, "state", "nonce"))
if state then return first == nonce and state or "in_use" end
redis.call("HSET", key, "created_at", text_of(now), "done", 0, "bad", 0, "nonce", nonce)
for at = 5, #ARGV, 2 do redis.call("HSET", key, ARGV[at], ARGV[at + 1]) end
redis.call("ZADD", flows, text_of(now), id)
redis.call("ZADD", flow_due, text_of(now + look_ms), id)
emit("workflow", { id })
return flow_state(id, "running", now)
