-- Enters a run into the lane of its lock, and lets the next one go when it leaves. Of the due runs of one lock, one
-- is its occupant: pending or processing. The others wait in the lock's lane, and are blocked. So a claim never finds
-- a run that may not start. `locked` has the lock of every unfinished run that asked for one.
-- @include is_run_before

-- Enters a due run: it is pending, unless its lock has an occupant that goes first. Returns its state.
local function enter_lane(run, run_score, lock)
  local behind = K.lane .. ":" .. (lock or "")
  local function step_back(other, other_score)
    redis.call("ZADD", behind, other_score, other)
    redis.call("ZADD", K.blocked, other_score, other)
  end
  local function is_first(other, at)
    return tonumber(at) < tonumber(run_score) or (tonumber(at) == tonumber(run_score) and is_run_before(other, run))
  end
  if lock and redis.call("HSETNX", K.locks, lock, run) == 0 then
    local occupant, at = redis.call("HGET", K.locks, lock), nil
    if occupant == run then
      -- It was processing and waits again: a waiting run that belongs before it goes first.
      occupant, at = unpack(redis.call("ZRANGE", behind, 0, 0, "WITHSCORES"))
    else
      at = redis.call("ZSCORE", K.pending, occupant)
      if not at or is_first(occupant, at) then
        step_back(run, run_score)
        return "blocked"
      end
    end
    if occupant then
      local is_before = is_first(occupant, at)
      local first, first_score = occupant, at
      if is_before then
        step_back(run, run_score)
      else
        first, first_score = run, run_score
        if redis.call("ZREM", K.pending, occupant) > 0 then step_back(occupant, at) end
      end
      redis.call("HSET", K.locks, lock, first)
      redis.call("ZREM", behind, first)
      redis.call("ZREM", K.blocked, first)
      redis.call("ZADD", K.pending, first_score, first)
      return is_before and "blocked" or "pending"
    end
  end
  redis.call("ZADD", K.pending, run_score, run)
  return "pending"
end

-- Frees the lock of a run, for now: the next run of the lane becomes pending. Returns how many did.
local function leave_lane(run, lock)
  local behind = K.lane .. ":" .. lock
  if redis.call("HGET", K.locks, lock) ~= run then
    redis.call("ZREM", behind, run)
    return 0
  end
  local following, at = unpack(redis.call("ZPOPMIN", behind))
  if not following then
    redis.call("HDEL", K.locks, lock)
    return 0
  end
  redis.call("HSET", K.locks, lock, following)
  redis.call("ZREM", K.blocked, following)
  redis.call("ZADD", K.pending, at, following)
  return 1
end

-- Frees the locks of ended runs: `leave_lane` for many at once, most of them without a lock. Returns how many runs
-- became pending.
local function leave_lanes(ended)
  local wanted, owners = {}, {}
  for i, lock in ipairs(redis.call("HMGET", K.locked, unpack(ended))) do
    if lock then wanted[#wanted + 1], owners[#owners + 1] = lock, ended[i] end
  end
  if #wanted == 0 then return 0 end
  redis.call("HDEL", K.locked, unpack(owners))
  local occupants, unlocked, released, scores = {}, {}, {}, {}
  for i, occupant in ipairs(redis.call("HMGET", K.locks, unpack(wanted))) do
    local behind = K.lane .. ":" .. wanted[i]
    if occupant ~= owners[i] then
      redis.call("ZREM", behind, owners[i])
    else
      local following, at = unpack(redis.call("ZPOPMIN", behind))
      if following then
        occupants[#occupants + 1], occupants[#occupants + 2] = wanted[i], following
        released[#released + 1] = following
        scores[#scores + 1], scores[#scores + 2] = at, following
      else
        unlocked[#unlocked + 1] = wanted[i]
      end
    end
  end
  if #unlocked > 0 then redis.call("HDEL", K.locks, unpack(unlocked)) end
  if #released > 0 then
    redis.call("HSET", K.locks, unpack(occupants))
    redis.call("ZREM", K.blocked, unpack(released))
    redis.call("ZADD", K.pending, unpack(scores))
  end
  return #released
end

-- Returns the lock of a run; nil for most.
local function lock_of(run)
  return redis.call("HGET", K.locked, run) or nil
end
