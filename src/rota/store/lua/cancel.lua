-- cancel: scheduled | blocked | pending | processing -> cancelled
--
-- Ends a run by request. One that is being processed is cancelled at once and its worker is told; until that worker
-- says that the handler has stopped, or the lease runs out, the run is also in `stopping`. Sent again with the same
-- token, it says what the first one did.
--
-- flags: allow-oom
-- KEYS runs        hash  run -> what happened to it
-- KEYS processing  zset  run -> lease deadline, ms
-- KEYS stopping    zset  run whose handler has yet to stop -> lease
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3] id
-- ARGV[4] run         "" for the newest of the id
-- ARGV[5] reach       "waiting" leaves a run that is being processed alone; "any" does not
-- ARGV[6] reason
--
-- Returns "cancelled" | "stopping" | "missing" | "processing" where that is out of reach | "ended" and how

-- @include cancel_run
-- @include depart
-- @include followers
-- @include now_ms
-- @include once
-- @include record
-- @include resolve
-- @include tally
-- @include text_of
-- @include wake
-- @include withdraw

local function cancel()
  local found = resolve(id, run)
  if not found then return "missing" end
  local now, line = now_ms(), redis.call("HGET", runs, found)
  local r = line and read_record(line) or new_record("waiting", "-")
  if r.state ~= "waiting" and r.state ~= "processing" then return "ended " .. r.state end
  if r.state == "processing" and reach == "waiting" then return "processing" end

  local outcome = "cancelled"
  if r.state == "processing" then
    local lease = redis.call("ZSCORE", processing, found)
    redis.call("ZREM", processing, found)
    outcome = "stopping"
    redis.call("ZADD", stopping, lease or text_of(now), found)
    redis.call("PUBLISH", inbox .. r.worker, "stop " .. queue .. " " .. found .. " " .. r.claim)
  else
    wake(withdraw(found))
    unfollow(found)
    wake(depart({ found }, "cancelled", now))
  end
  cancel_run(found, r, reason, now)
  write_tally(now)
  return outcome
end

return once(cancel)
