-- Removes a waiting run from the set of its paused task, if it was set aside.

local function leave_paused_runs(run)
  for _, task in ipairs(redis.call("HKEYS", K.paused_tasks)) do
    redis.call("ZREM", K.paused_runs .. ":" .. task, run)
  end
end
