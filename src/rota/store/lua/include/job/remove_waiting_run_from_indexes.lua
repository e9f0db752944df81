-- Removes a waiting run from all indexes, the lane of its lock and the set of its paused task, before it is ended,
-- deleted or moved. Returns how many runs became pending.
-- @include enter_and_leave_lock_lane
-- @include leave_paused_runs

local function remove_waiting_run_from_indexes(run)
  local lock = lock_of(run)
  local freed = lock and leave_lane(run, lock) or 0
  leave_paused_runs(run)
  for _, index in ipairs({ K.pending, K.scheduled, K.blocked, K.expiring }) do redis.call("ZREM", index, run) end
  return freed
end
