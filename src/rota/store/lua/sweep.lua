-- sweep: completed | failed | cancelled -> (none)
--
-- Forgets finished runs whose time is over, in a queue where nothing else ends and pushes them out. Harmless when
-- sent again.
--
-- flags: allow-oom
-- KEYS[1] jobs        hash    run -> record
-- KEYS[2] runs        hash    run -> what happened to it
-- KEYS[3] ids         hash    chosen id -> newest run
-- KEYS[4] named       hash    run -> chosen id
-- KEYS[5] completed   zset    run -> time it ended, ms
-- KEYS[6] failed      zset    run -> time it ended, ms
-- KEYS[7] cancelled   zset    run -> time it ended, ms
-- KEYS[8] results     hash    run -> result
-- KEYS[9] errors      hash    run -> last error
-- KEYS[10] history    hash    run -> lines of JSON
-- KEYS[11] progress   hash    run -> progress
-- KEYS[12] logs       hash    run -> sizes of its log
-- KEYS[13] log        prefix  of one list per run, `log:<run>`
-- KEYS[14] waiters    hash    run -> waiting clients
-- KEYS[15] rules      set     retention lists in use
-- KEYS[16] kept       prefix  of one list per retention rule, `kept:<state>:<rule>`
-- KEYS[17] beats      hash    worker -> last heartbeat, ms
-- KEYS[18] stopping   zset    run whose handler has yet to stop -> lease
-- ARGV[1] bound       how many runs it may forget
--
-- Returns "more" | "done"

-- @include now_ms
-- @include text_of
-- @include forget
-- @include retain

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
-- A worker that was killed leaves its last heartbeat behind; after an hour nobody asks for it.
local heartbeats = redis.call("HGETALL", beats)
for i = 1, #heartbeats, 2 do
  if now - heartbeats[i + 1] > 3600000 then redis.call("HDEL", beats, heartbeats[i]) end
end
return answer
