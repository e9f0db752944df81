-- Returns the paused task for which a run was set aside, or nil.

local function paused_task_of(run)
  for _, task in ipairs(redis.call("HKEYS", K.paused_tasks)) do
    if redis.call("ZSCORE", K.paused_runs .. ":" .. task, run) then return task end
  end
  return nil
end
