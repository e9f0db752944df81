-- Returns the retention rule of a run that did not succeed while a redrive, of itself or of the parent that cancelled
-- it, can bring it back: its cancelled dependents are kept as long. Else "".
-- @include stall_and_retention_policy_of_run

local function retention_of_redrivable_run(run, outcome)
  run = redis.call("HGET", K.merged_into, run) or run
  if redis.call("HEXISTS", K.jobs, run) == 0 then return "" end
  if outcome == "failed" then return policy_of(run).failed_rule end
  return outcome == "cancelled" and redis.call("HGET", K.failed_parents .. ":" .. run, "!") or ""
end
