-- sweep: completed | failed | cancelled -> (none)
--
-- Forgets finished runs whose time is over, in a queue where nothing else ends and pushes them out. Harmless when
-- sent again.
--
-- flags: allow-oom
-- KEYS completed  zset    run -> time it ended, ms
-- KEYS failed     zset    run -> time it ended, ms
-- KEYS cancelled  zset    run -> time it ended, ms
-- KEYS rules      set     retention lists in use
-- KEYS kept       prefix  of one list per retention rule, `kept:<state>:<rule>`
-- KEYS beats      hash    worker -> last heartbeat, ms
-- KEYS unborn     zset    run that has yet to be tied to its parents -> since, ms
-- ARGV[1] bound       how many runs it may forget
--
-- Returns "more" | "done"

-- @include drop
-- @include now_ms
-- @include retain
-- @include text_of

local now, answer = now_ms(), "done"
local index_of = { completed = completed, failed = failed, cancelled = cancelled }
for _, name in ipairs(redis.call("SMEMBERS", rules)) do
  local state, rule = string.match(name, "^(%a+):(.*)$")
  if trim(index_of[state], state, rule, now, tonumber(bound)) then
    answer = "more"
    break
  end
  if redis.call("EXISTS", kept .. ":" .. name) == 0 then redis.call("SREM", rules, name) end
end
-- Whoever prepared these has died before they became visible.
for _, run in ipairs(redis.call("ZRANGE", unborn, "-inf", text_of(now - 60000), "BYSCORE", "LIMIT", 0, bound)) do drop(run) end
-- A worker that was killed leaves its last heartbeat behind; after an hour nobody asks for it.
local heartbeats = redis.call("HGETALL", beats)
for i = 1, #heartbeats, 2 do
  if now - heartbeats[i + 1] > 3600000 then redis.call("HDEL", beats, heartbeats[i]) end
end
return answer
