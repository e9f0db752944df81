-- Puts a run that nothing holds up any more into the scheduled or pending index, or the lane of its lock. Returns its
-- state.
-- @include enter_and_leave_lock_lane
-- @include format_integer
-- @include pending_score
-- @include scheduled_score

local function put_into_scheduled_pending_or_lock_lane(run, priority, due, now)
  if due > now then
    redis.call("ZADD", K.scheduled, format_integer(scheduled_score(priority, due)), run)
    return "scheduled"
  end
  return enter_lane(run, format_integer(pending_score(priority, due)), lock_of(run))
end
