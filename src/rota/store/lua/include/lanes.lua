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

-- `enter` for many at once, each a run, its place and its lock. Says how many have become pending. Where one belongs
-- before an occupant that has yet to start, the runs of that lock go one by one.
local function enter_all(entering)
  local names, of_lock = {}, {}
  for _, one in ipairs(entering) do
    local lock = one[3]
    if not of_lock[lock] then names[#names + 1], of_lock[lock] = lock, {} end
    table.insert(of_lock[lock], one)
  end
  if #names == 0 then return 0 end
  local held = redis.call("HMGET", locks, unpack(names))
  local asked = {}
  for i = 1, #names do asked[i] = held[i] or "" end
  local places = redis.call("ZMSCORE", pending, unpack(asked))
  local occupants, first_ones, waiting, freed = {}, {}, {}, 0
  local function is_before(one, other) -- each a run and its place
    local at, other_at = tonumber(one[2]), tonumber(other[2])
    return at < other_at or (at == other_at and one[1] < other[1])
  end
  for i, lock in ipairs(names) do
    local group = of_lock[lock]
    local first = group[1]
    for _, one in ipairs(group) do
      if is_before(one, first) then first = one end
    end
    if held[i] and places[i] and is_before(first, { held[i], places[i] }) then
      for _, one in ipairs(group) do
        if enter(unpack(one)) == "pending" then freed = freed + 1 end
      end
    else
      if not held[i] then
        occupants[#occupants + 1], occupants[#occupants + 2] = lock, first[1]
        first_ones[#first_ones + 1], first_ones[#first_ones + 2] = first[2], first[1]
      end
      local behind = {}
      for _, one in ipairs(group) do
        if held[i] or one ~= first then
          behind[#behind + 1], behind[#behind + 2] = one[2], one[1]
          waiting[#waiting + 1], waiting[#waiting + 2] = one[2], one[1]
        end
      end
      if #behind > 0 then redis.call("ZADD", lane .. ":" .. lock, unpack(behind)) end
    end
  end
  if #occupants > 0 then
    redis.call("HSET", locks, unpack(occupants))
    redis.call("ZADD", pending, unpack(first_ones))
  end
  if #waiting > 0 then redis.call("ZADD", blocked, unpack(waiting)) end
  return freed + #first_ones / 2
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
