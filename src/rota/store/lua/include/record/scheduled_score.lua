-- The score of a run in the scheduled index: the time it falls due, and its priority (-100 … 100) in the low byte, so
-- that promoting the run does not have to read its record.
local function scheduled_score(priority, due)
  return due * 256 + priority + 100
end

-- The highest score of a run that is due by `now`, whatever its priority.
local function highest_score_due(now)
  return now * 256 + 255
end

local function priority_when_scheduled(score)
  return score % 256 - 100
end

local function due_when_scheduled(score)
  return math.floor(score / 256)
end
