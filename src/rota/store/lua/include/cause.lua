-- How long a run that did not succeed is kept for a redrive, of itself or of what had it cancelled: whoever comes after
-- it is cancelled too, and kept as long. "" when no redrive can bring it back.
-- keys: jobs, merged, dooms
-- @include policy

local function cause_rule(run, outcome)
  run = redis.call("HGET", merged, run) or run
  if redis.call("HEXISTS", jobs, run) == 0 then return "" end
  if outcome == "failed" then return policy(run).failed_rule end
  return outcome == "cancelled" and redis.call("HGET", dooms .. ":" .. run, "!") or ""
end
