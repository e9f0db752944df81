-- Releases the id and the lock of a cancelled or deleted run whose handler has stopped, or whose lease has expired,
-- and notifies its dependents. Removes what `remove_runs_with_details_except_from_state_indexes` kept. Returns how
-- many runs became pending; 0 if it was released before.
-- @include release_next_runs_if_any_wait
-- @include remove_dependency_data

local function release_id_and_lock_of_stopped_run(run, now)
  if redis.call("ZREM", K.stopping, run) == 0 then return 0 end
  local freed = release_next_runs_if_any_wait({ run }, "cancelled", now)
  if redis.call("HEXISTS", K.jobs, run) == 0 then
    remove_dependency_data({ run })
    redis.call("HDEL", K.runs, run)
    local id = redis.call("HGET", K.named, run)
    if id then
      redis.call("HDEL", K.named, run)
      if redis.call("HGET", K.ids, id) == run then redis.call("HDEL", K.ids, id) end
    end
  end
  return freed
end
