-- put_ended_workflow_runs_under_retention: no change of state
--
-- Puts the runs of an ended workflow under their own retention rules. Until then they are kept for the workflow.
-- Harmless when sent again.
--
-- flags: allow-oom
-- KEYS failed           zset    run -> time it ended, ms: the dead letters
-- KEYS cancelled        zset    run -> time it ended, ms
-- KEYS steps            set     runs that belong to a workflow
-- KEYS retention_rules  set     retention lists in use
-- KEYS kept             prefix  `kept:…`: finished runs of one retention rule, oldest first
-- ARGV[1…] two for each: id, run ("" for the newest of the id)
--
-- Returns how many it has handled: fewer than asked for, if their records are long

-- @include find_run_by_id
-- @include read_job_record
-- @include stall_and_retention_policy_of_run

local handled = 0
for at = 1, #ARGV, 2 do
  if has_handled_enough() then break end
  handled = handled + 1
  local run = find_run_by_id(ARGV[at], ARGV[at + 1])
  if run and redis.call("SREM", K.steps, run) > 0 then
    for state, index in pairs({ failed = K.failed, cancelled = K.cancelled }) do
      local ended_at = redis.call("ZSCORE", index, run)
      if ended_at then
        local rules_of = policy_of(run)
        local rule = state .. ":" .. (state == "failed" and rules_of.failed_rule or rules_of.finished_rule)
        redis.call("RPUSH", K.kept .. ":" .. rule, run .. " " .. ended_at)
        redis.call("SADD", K.retention_rules, rule)
      end
    end
  end
end
return handled
