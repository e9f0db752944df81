-- What is due in a queue, done by whoever claims next: no leader, no timer of its own.
-- keys: runs, pending, scheduled, blocked, processing, cancelled, stopping, expiring, locked, beats
-- @include count_run
-- @include depart
-- @include emit
-- @include enter_all
-- @include finish
-- @include followers
-- @include place
-- @include policy
-- @include record
-- @include release
-- @include stall
-- @include text_of
-- @include withdraw

-- scheduled -> pending, for runs whose time has come. True when there may be more of them.
local function promote(now, bound)
  local has_locks = redis.call("EXISTS", locked) > 0
  -- Without locks all are moved together, which costs a tenth.
  local most = has_locks and bound or 10 * bound
  local due = redis.call("ZRANGE", scheduled, "-inf", text_of(now * 256 + 255), "BYSCORE", "LIMIT", 0, most, "WITHSCORES")
  if #due == 0 then return false end
  local places, promoted = {}, {}
  for i = 1, #due, 2 do
    local score = tonumber(due[i + 1])
    places[#places + 1] = text_of(place(score % 256 - 100, math.floor(score / 256)))
    places[#places + 1] = due[i]
    promoted[#promoted + 1] = due[i]
  end
  redis.call("ZREMRANGEBYRANK", scheduled, 0, #promoted - 1)
  local entering, free = {}, places
  if has_locks then
    free = {}
    for i, lock in ipairs(redis.call("HMGET", locked, unpack(promoted))) do
      local at, run = places[2 * i - 1], promoted[i]
      if lock then
        entering[#entering + 1] = { run, at, lock }
      else
        free[#free + 1], free[#free + 2] = at, run
      end
    end
  end
  if #free > 0 then redis.call("ZADD", pending, unpack(free)) end
  enter_all(entering)
  emit("promote", promoted)
  return #promoted >= most
end

-- waiting -> cancelled, for runs that have not started by the time they had to.
local function expire(now, bound)
  local late = redis.call("ZRANGE", expiring, "-inf", text_of(now), "BYSCORE", "LIMIT", 0, bound)
  local by_rule, ended = {}, {}
  for _, run in ipairs(late) do
    redis.call("ZREM", expiring, run)
    if redis.call("ZSCORE", pending, run) or redis.call("ZSCORE", scheduled, run) or redis.call("ZSCORE", blocked, run) then
      withdraw(run)
      unfollow(run)
      local line = redis.call("HGET", runs, run)
      local r = line and read_record(line) or new_record("waiting", "-")
      r.state, r.ended_at, r.reason = "cancelled", text_of(now), "expired: it had not started in time"
      redis.call("HSET", runs, run, write_record(r))
      count_run(run, "cancelled")
      local rule = policy(run).finished_rule
      by_rule[rule] = by_rule[rule] or {}
      table.insert(by_rule[rule], run)
      ended[#ended + 1] = run
    end
  end
  depart(ended, "cancelled", now)
  finish(cancelled, "cancelled", by_rule, now)
  return #late
end

-- processing -> pending | failed, for runs whose lease has run out; and the end of waiting for handlers to stop.
-- Says how many that were, and which of them had an attempt under way.
local function reap(now, bound)
  local expired = redis.call("ZRANGE", processing, "-inf", text_of(now), "BYSCORE", "LIMIT", 0, bound, "WITHSCORES")
  local lost, lease_of, vanished = {}, {}, {}
  for i = 1, #expired, 2 do
    lost[#lost + 1] = expired[i]
    lease_of[expired[i]] = tonumber(expired[i + 1])
  end
  if #lost > 0 then
    stall(lost, now, "gone", function(run, r)
      -- Never renewed, though its owner beat well after claiming it: the owner lives and never heard of this claim.
      local beat = redis.call("HGET", beats, r.worker)
      local never_named = lease_of[run] == r.claimed_at + lease_ms
      local is_unheard = never_named and beat and beat - r.claimed_at >= 1000
      if not is_unheard then vanished[#vanished + 1] = run end
      return not is_unheard, is_unheard
    end)
  end
  local stopped = redis.call("ZRANGE", stopping, "-inf", text_of(now), "BYSCORE", "LIMIT", 0, bound)
  for _, run in ipairs(stopped) do release(run, now) end
  return math.max(#lost, #stopped), vanished
end

-- True when there may be more to do than the bound allowed, and the runs that were reaped. What one of them leaves of
-- the bound is for the next.
local function housekeeping(now, may_reap, bound)
  local is_more = promote(now, bound)
  -- A follow-up that is too late must not live on in the run that it would merge into.
  local left = bound - expire(now, bound)
  local reaped, vanished = 0, {}
  if left > 0 and may_reap then
    reaped, vanished = reap(now, left)
    left = left - reaped
    -- What was taken back unstarted may be too late by now.
    if left > 0 then left = left - expire(now, left) end
  end
  return is_more or left <= 0, vanished
end
