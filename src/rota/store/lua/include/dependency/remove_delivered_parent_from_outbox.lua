-- Removes a parent from the outbox, once its latest outcome is delivered to all dependents. Its dependents are kept
-- while it may be redriven, with its record or that of the run it was merged into.

local function remove_delivered_parent_from_outbox(run)
  redis.call("ZREM", K.outbox, run)
  redis.call("HDEL", K.outcome_results, run)
  local outcome = string.match(redis.call("HGET", K.outcomes, run) or "", "^%d+ (%a+)")
  local is_kept = redis.call("HEXISTS", K.jobs, run) + redis.call("HEXISTS", K.merged_into, run) > 0
  if outcome == "completed" or not is_kept then
    redis.call("SREM", K.has_dependents, run)
    redis.call("HDEL", K.outcomes, run)
    redis.call("UNLINK", K.dependents .. ":" .. run)
  end
end
