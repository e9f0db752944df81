-- A run's place in the pending index: priority first, then the time it became due. Runs that share both are
-- ordered by their names, which grow, so the whole order is (priority, due, run). 2^42 ms is the year 2109.
local function place(priority, due)
  return priority * 4398046511104 + due
end

-- The priority inside a place, and the time.
local function priority_of(place)
  return math.floor(place / 4398046511104)
end

local function due_of(place)
  return place % 4398046511104
end

-- A run's score in the scheduled index: the time it falls due, and its priority (-100 … 100) in the low byte,
-- so that promoting it does not have to read its record.
local function due_score(priority, due)
  return due * 256 + priority + 100
end
