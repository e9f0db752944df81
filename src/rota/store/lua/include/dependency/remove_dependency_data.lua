-- Removes the dependency data of runs. Outcomes that are still in the outbox are delivered.
-- @include queue_key_prefix

local function remove_dependents_of(run)
  if redis.call("SISMEMBER", K.has_dependents, run) > 0 and not redis.call("ZSCORE", K.outbox, run) then
    redis.call("SREM", K.has_dependents, run)
    redis.call("HDEL", K.outcomes, run)
    redis.call("UNLINK", K.dependents .. ":" .. run)
  end
end

local function remove_dependency_data(gone)
  if redis.call("EXISTS", K.merged_from, K.has_parents, K.has_dependents, K.steps) == 0 then return end
  for _, run in ipairs(gone) do
    for other in string.gmatch(redis.call("HGET", K.merged_from, run) or "", "%S+") do
      redis.call("HDEL", K.merged_into, other)
      remove_dependents_of(other)
    end
    redis.call("HDEL", K.merged_from, run)
    redis.call("SREM", K.steps, run)
    if redis.call("SREM", K.has_parents, run) > 0 then
      local results = queue_key_prefix .. "parent_results:" .. run
      redis.call("UNLINK", K.parents .. ":" .. run, K.failed_parents .. ":" .. run, results)
    end
    remove_dependents_of(run)
  end
end
