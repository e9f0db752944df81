-- Removes a waiting run from the set of its paused task, if it was set aside.
-- @include queue_key_prefix

local function leave_paused_runs(run)
  for _, task in ipairs(redis.call("HKEYS", queue_key_prefix .. "paused_tasks")) do
    redis.call("ZREM", queue_key_prefix .. "paused_runs:" .. task, run)
  end
end
