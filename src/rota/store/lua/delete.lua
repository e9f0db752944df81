-- delete: scheduled | blocked | pending | processing | completed | failed | cancelled -> (none)
--
-- Removes a run and every trace of it. A handler that is at work is told to stop, and what it reports later is
-- refused; until it has stopped, or its lease runs out, its claim and its id are still known. Sent again with the same
-- token, it says what the first one did.
--
-- flags: allow-oom
-- KEYS meta        hash  totals
-- KEYS runs        hash  run -> what happened to it
-- KEYS processing  zset  run -> lease deadline, ms
-- KEYS stopping    zset  run whose handler has yet to stop -> lease
-- KEYS cancelled   zset  run -> time it ended, ms
-- KEYS waiters     hash  run -> waiting clients
-- KEYS completed   zset  run -> time it ended, ms
-- KEYS failed      zset  run -> time it ended, ms
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3] id
-- ARGV[4] run         "" for the newest of the id
--
-- Returns "deleted" | "stopping" | "missing"

-- @include depart
-- @include emit
-- @include followers
-- @include forget
-- @include now_ms
-- @include once
-- @include record
-- @include resolve
-- @include text_of
-- @include wake
-- @include withdraw

local function delete()
  local found = resolve(id, run)
  if not found then return "missing" end
  local outcome, now = "deleted", now_ms()
  local state = string.match(redis.call("HGET", runs, found) or "waiting", "^%S+")
  local is_unfinished = state == "waiting" or state == "processing"
  local lease = redis.call("ZSCORE", processing, found)
  if lease then
    local r = read_record(redis.call("HGET", runs, found))
    outcome = "stopping"
    r.state, r.ended_at = "cancelled", text_of(now)
    redis.call("HSET", runs, found, write_record(r))
    redis.call("ZADD", stopping, lease, found)
    redis.call("PUBLISH", inbox .. r.worker, "stop " .. queue .. " " .. found .. " " .. r.claim)
  end
  if state == "waiting" then
    wake(withdraw(found))
    unfollow(found)
  end
  local clients = redis.call("HGET", waiters, found)
  for _, index in ipairs({ processing, completed, failed, cancelled }) do
    redis.call("ZREM", index, found)
  end
  if is_unfinished and outcome == "deleted" then wake(depart({ found }, "deleted", now)) end
  forget({ found })
  redis.call("HINCRBY", meta, "deleted", 1)
  emit("delete", { found })
  for client in string.gmatch(clients or "", "%S+") do
    redis.call("PUBLISH", inbox .. client, "ended " .. queue .. " " .. found)
  end
  return outcome
end

return once(delete)
