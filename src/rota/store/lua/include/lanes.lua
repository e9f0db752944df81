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
  local function is_first(other, at)
    return tonumber(at) < tonumber(run_place) or (tonumber(at) == tonumber(run_place) and other < run)
  end
  if lock and redis.call("HSETNX", locks, lock, run) == 0 then
    local occupant, at = redis.call("HGET", locks, lock), nil
    if occupant == run then
      -- It was being processed and comes back: whoever waits and belongs before it goes first.
      occupant, at = unpack(redis.call("ZRANGE", behind, 0, 0, "WITHSCORES"))
    else
      at = redis.call("ZSCORE", pending, occupant)
      if not at or is_first(occupant, at) then
        step_back(run, run_place)
        return "blocked"
      end
    end
    if occupant then
      local is_before = is_first(occupant, at)
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

-- Runs that have ended want their locks no more: `vacate` for many at once, most of them without a lock. Says how many
-- have become pending.
local function vacate_all(ended)
  local wanted, owners = {}, {}
  for i, lock in ipairs(redis.call("HMGET", locked, unpack(ended))) do
    if lock then wanted[#wanted + 1], owners[#owners + 1] = lock, ended[i] end
  end
  if #wanted == 0 then return 0 end
  redis.call("HDEL", locked, unpack(owners))
  local occupants, unlocked, released, places = {}, {}, {}, {}
  for i, occupant in ipairs(redis.call("HMGET", locks, unpack(wanted))) do
    local behind = lane .. ":" .. wanted[i]
    if occupant ~= owners[i] then
      redis.call("ZREM", behind, owners[i])
    else
      local following, at = unpack(redis.call("ZPOPMIN", behind))
      if following then
        occupants[#occupants + 1], occupants[#occupants + 2] = wanted[i], following
        released[#released + 1] = following
        places[#places + 1], places[#places + 2] = at, following
      else
        unlocked[#unlocked + 1] = wanted[i]
      end
    end
  end
  if #unlocked > 0 then redis.call("HDEL", locks, unpack(unlocked)) end
  if #released > 0 then
    redis.call("HSET", locks, unpack(occupants))
    redis.call("ZREM", blocked, unpack(released))
    redis.call("ZADD", pending, unpack(places))
  end
  return #released
end

-- The lock of a run; nil for nearly all.
local function lock_of(run)
  return redis.call("HGET", locked, run) or nil
end
