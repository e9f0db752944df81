-- take_flows: no change of state
--
-- Workflows that somebody must see to, taken for a while: whoever took one and died is not waited for longer than that.
-- Those that are no longer kept are forgotten. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS flow_due  zset    workflow that somebody must see to -> when
-- KEYS flow      prefix  of one hash per workflow, `flow:<id>`
-- KEYS flows     zset    workflow -> when it was committed, ms
-- ARGV[1] limit    how many
-- ARGV[2] hold_ms
--
-- Returns their ids

-- @include now_ms
-- @include text_of

local now, taken = now_ms(), {}
for _, id in ipairs(redis.call("ZRANGE", flow_due, "-inf", text_of(now), "BYSCORE", "LIMIT", 0, limit)) do
  if redis.call("EXISTS", flow .. ":" .. id) > 0 then
    redis.call("ZADD", flow_due, text_of(now + hold_ms), id)
    taken[#taken + 1] = id
  else
    redis.call("ZREM", flow_due, id)
    redis.call("ZREM", flows, id)
  end
end
return taken
