-- Locks. Of the runs of one lock that are due, one is its occupant: pending, or being processed. The others wait
-- behind it in the lock's lane, and are blocked. So a claim never meets a run that may not start, whatever is locked.
-- `locked` has the lock of every unfinished run that asked for one.
-- keys: pending, blocked, locked, locks, lane

-- A run whose time has come takes its place: it is pending, unless its lock has an occupant that goes first.
local function enter(run, run_place, lock)
  local behind = lane .. ":" .. (lock or "")
  local function step_back(other, other_place)
    redis.call("ZADD", behind, other_place, other)
    redis.call("ZADD", blocked, other_place, other)
  end
  if lock then
    local occupant, at = redis.call("HGET", locks, lock), nil
    if occupant == run then
      -- It was being processed and comes back: whoever waits and belongs before it goes first.
      occupant, at = unpack(redis.call("ZRANGE", behind, 0, 0, "WITHSCORES"))
    elseif occupant then
      at = redis.call("ZSCORE", pending, occupant)
      if not at then
        step_back(run, run_place)
        return "blocked"
      end
    end
    if occupant then
      local is_before = tonumber(at) < tonumber(run_place) or (tonumber(at) == tonumber(run_place) and occupant < run)
      local first, first_place = occupant, at
      if is_before then
        step_back(run, run_place)
      else
        first, first_place = run, run_place
        if redis.call("ZREM", pending, occupant) > 0 then step_back(occupant, at) end
      end
      redis.call("HSET", locks, lock, first)
      redis.call("ZREM", behind, first)
      redis.call("ZREM", blocked, first)
      redis.call("ZADD", pending, first_place, first)
      return is_before and "blocked" or "pending"
    end
    redis.call("HSET", locks, lock, run)
  end
  redis.call("ZADD", pending, run_place, run)
  return "pending"
end

-- A run no longer wants its lock, for now: the next of the lane is pending. Says how many have become so.
local function vacate(run, lock)
  local behind = lane .. ":" .. lock
  if redis.call("HGET", locks, lock) ~= run then
    redis.call("ZREM", behind, run)
    return 0
  end
  local following, at = unpack(redis.call("ZPOPMIN", behind))
  if not following then
    redis.call("HDEL", locks, lock)
    return 0
  end
  redis.call("HSET", locks, lock, following)
  redis.call("ZREM", blocked, following)
  redis.call("ZADD", pending, at, following)
  return 1
end

-- The lock of a run; nil for nearly all.
local function lock_of(run)
  return redis.call("HGET", locked, run) or nil
end
