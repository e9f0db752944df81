-- Returns the paused task for which a run was set aside, or nil.
-- @include queue_key_prefix

local function paused_task_of(run)
  for _, task in ipairs(redis.call("HKEYS", queue_key_prefix .. "paused_tasks")) do
    if redis.call("ZSCORE", queue_key_prefix .. "paused_runs:" .. task, run) then return task end
  end
  return nil
end
