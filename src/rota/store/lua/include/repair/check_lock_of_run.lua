-- Checks the lock of an unfinished run: that it is known, that a run that is pending or processing occupies it, and
-- that one which is blocked is in its lane, behind an occupant that can still end. Returns how many runs became
-- pending.
-- @include enter_and_leave_lock_lane
-- @include put_back_waiting_run
-- @include report_index_problem

-- Returns true for a run that may occupy a lock: pending, processing, or with a handler that has yet to stop.
local function may_occupy(run)
  for _, index in ipairs({ K.pending, K.processing, K.stopping }) do
    if redis.call("ZSCORE", index, run) then return true end
  end
  return false
end

local function check_occupant(run, f)
  local occupant = redis.call("HGET", K.locks, f.lock)
  if occupant == run then return end
  if not occupant or not may_occupy(occupant) then
    if found_problem(run, "locks", "it holds its lock, and is not its occupant") then
      redis.call("HSET", K.locks, f.lock, run)
      redis.call("ZREM", K.lane .. ":" .. f.lock, run)
    end
  elseif f.state == "processing" then
    found_loss(run, "locks", "it is processing beside " .. occupant .. ", which has the same lock")
  elseif found_problem(run, "locks", "it may start beside " .. occupant .. ", which has the same lock") then
    local score = redis.call("ZSCORE", K.pending, run)
    redis.call("ZREM", K.pending, run)
    redis.call("ZADD", K.lane .. ":" .. f.lock, score, run)
    redis.call("ZADD", K.blocked, score, run)
  end
end

local function check_lane(run, f)
  local behind, occupant = K.lane .. ":" .. f.lock, redis.call("HGET", K.locks, f.lock)
  if not redis.call("ZSCORE", behind, run) then
    if not found_problem(run, "lane", "it waits for its lock, and is not in its lane") then return 0 end
    redis.call("ZADD", behind, redis.call("ZSCORE", K.blocked, run), run)
  end
  if occupant and occupant ~= run and may_occupy(occupant) then return 0 end
  if not found_problem(run, "locks", "nothing holds the lock that it waits for") then return 0 end
  -- The first of the lane takes it.
  redis.call("HSET", K.locks, f.lock, occupant or run)
  return leave_lane(occupant or run, f.lock)
end

local function check_lock_of_run(run, f)
  if f.lock == "" or (f.state ~= "waiting" and f.state ~= "processing") then return 0 end
  if redis.call("HGET", K.locked, run) ~= f.lock and found_problem(run, "locked", "its lock is not known") then
    redis.call("HSET", K.locked, run, f.lock)
  end
  if redis.call("ZSCORE", K.pending, run) or redis.call("ZSCORE", K.processing, run) then
    check_occupant(run, f)
  elseif redis.call("ZSCORE", K.blocked, run) and not why_blocked(run)
    and redis.call("SISMEMBER", K.has_parents, run) == 0 then
    return check_lane(run, f)
  end
  return 0
end
