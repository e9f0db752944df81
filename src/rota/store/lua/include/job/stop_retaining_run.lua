-- Removes a finished run from the list of its retention rule, before it is deleted or waits again: an entry that
-- stayed would count as one of the runs that the rule retains, and push another one out.
-- @include read_job_record
-- @include stall_and_retention_policy_of_run

local function stop_retaining_run(run, state, index)
  local ended_at = redis.call("ZSCORE", index, run)
  if not ended_at then return end
  -- The list is searched from the nearer end. What is passed on the way counts as bytes handled.
  local rank, size = redis.call("ZRANK", index, run), redis.call("ZCARD", index)
  local direction = rank <= size / 2 and 1 or -1
  local entry = run .. " " .. ended_at
  bytes_handled = bytes_handled + math.min(rank, size - rank) * #entry
  redis.call("ZREM", index, run)
  -- The runs of an unfinished workflow are under no rule.
  if state ~= "completed" and redis.call("SISMEMBER", K.steps, run) == 1 then return end
  local function remove_from(name)
    if redis.call("LREM", K.kept .. ":" .. name, direction, entry) == 0 then return false end
    if redis.call("EXISTS", K.kept .. ":" .. name) == 0 then redis.call("SREM", K.retention_rules, name) end
    return true
  end
  local policy = policy_of(run)
  local likely = state .. ":" .. (state == "failed" and policy.failed_rule or policy.finished_rule)
  if remove_from(likely) then return end
  -- A client waited for its end, or it is kept as long as the parent that cancelled it.
  for _, name in ipairs(redis.call("SMEMBERS", K.retention_rules)) do
    if name ~= likely and string.find(name, state .. ":", 1, true) == 1 and remove_from(name) then return end
  end
end
