-- Does what `enter` does for many at once, each a run, its place and its lock. Says how many have become pending. Where one belongs
-- before an occupant that has yet to start, the runs of that lock go one by one.
-- keys: pending, blocked, locks, lane
-- @include lanes

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
