-- Enters many due runs into the lanes of their locks at once, as `enter_lane` does for one: each is a run, its score
-- and its lock. Returns how many became pending. Where one belongs before an occupant that has not started, the runs
-- of that lock enter one by one.
-- @include enter_and_leave_lock_lane
-- @include is_run_before

local function enter_lock_lanes_in_batch(entering)
  local names, of_lock = {}, {}
  for _, one in ipairs(entering) do
    local lock = one[3]
    if not of_lock[lock] then names[#names + 1], of_lock[lock] = lock, {} end
    table.insert(of_lock[lock], one)
  end
  if #names == 0 then return 0 end
  local held = redis.call("HMGET", K.locks, unpack(names))
  local asked = {}
  for i = 1, #names do asked[i] = held[i] or "" end
  local scores = redis.call("ZMSCORE", K.pending, unpack(asked))
  local occupants, first_ones, waiting, freed = {}, {}, {}, 0
  local function is_before(one, other) -- each a run and its score
    local at, other_at = tonumber(one[2]), tonumber(other[2])
    return at < other_at or (at == other_at and is_run_before(one[1], other[1]))
  end
  for i, lock in ipairs(names) do
    local group = of_lock[lock]
    local first = group[1]
    for _, one in ipairs(group) do
      if is_before(one, first) then first = one end
    end
    if held[i] and scores[i] and is_before(first, { held[i], scores[i] }) then
      for _, one in ipairs(group) do
        if enter_lane(unpack(one)) == "pending" then freed = freed + 1 end
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
      if #behind > 0 then redis.call("ZADD", K.lane .. ":" .. lock, unpack(behind)) end
    end
  end
  if #occupants > 0 then
    redis.call("HSET", K.locks, unpack(occupants))
    redis.call("ZADD", K.pending, unpack(first_ones))
  end
  if #waiting > 0 then redis.call("ZADD", K.blocked, unpack(waiting)) end
  return freed + #first_ones / 2
end
