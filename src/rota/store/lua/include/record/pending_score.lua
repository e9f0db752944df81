-- The score of a run in the pending index: priority first, then the time it became due. Runs with the same score are
-- ordered by their names, which grow: so the order is (priority, due, run). 2^42 ms is the year 2109.
local DUE_RANGE = 2 ^ 42

local function pending_score(priority, due)
  return priority * DUE_RANGE + due
end

local function priority_in_score(score)
  return math.floor(score / DUE_RANGE)
end

local function due_in_score(score)
  return score % DUE_RANGE
end
