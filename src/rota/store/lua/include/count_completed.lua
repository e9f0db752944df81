-- Counts runs that complete, with the time that each has run. All runs of one claim have begun at the same time.
-- @include tally

local completed_of_claim = {}

local function note_completed(task, claim, line)
  local of_claim = completed_of_claim[claim]
  if not of_claim then
    of_claim = { since = tonumber(string.match(line, "^%S+ %S+ %S+ (%d+)") or 0), tasks = {} }
    completed_of_claim[claim] = of_claim
  end
  of_claim.tasks[task] = (of_claim.tasks[task] or 0) + 1
end

local function count_completed(now)
  for _, of_claim in pairs(completed_of_claim) do
    for task, amount in pairs(of_claim.tasks) do
      count(task, "completed", amount)
      count_time(task, "ran", now - of_claim.since, amount)
    end
  end
end
