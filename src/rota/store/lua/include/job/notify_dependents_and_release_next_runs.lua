-- Notifies the dependents of ended runs, and releases the next run of each lock's lane and the follow-up of each id.
-- Returns how many became pending.
-- @include enter_and_leave_lock_lane
-- @include find_and_detach_follow_up
-- @include pending_score
-- @include put_into_scheduled_pending_or_lock_lane
-- @include write_outcomes_to_outbox

local function notify_dependents_and_release_next_runs(gone, outcome, now)
  write_outcomes_to_outbox(gone, outcome, now)
  local freed = 0
  if redis.call("EXISTS", K.locked) > 0 then freed = leave_lanes(gone) end
  if redis.call("EXISTS", K.follow_ups) > 0 then
    for _, run in ipairs(gone) do
      local following = follow_up_of(run)
      if following then
        redis.call("HDEL", K.follow_ups, run)
        redis.call("HDEL", K.follows, following)
        local at = redis.call("ZSCORE", K.blocked, following)
        redis.call("ZREM", K.blocked, following)
        if at then
          local priority, due = priority_in_score(at), due_in_score(at)
          local state = put_into_scheduled_pending_or_lock_lane(following, priority, due, now)
          if state == "pending" then freed = freed + 1 end
        end
      end
    end
  end
  return freed
end
