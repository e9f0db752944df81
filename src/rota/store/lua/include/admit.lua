-- A run that nothing holds up any more waits for its time, or for a worker. Says in which state.
-- keys: scheduled
-- @include lanes
-- @include place
-- @include text_of

local function admit(run, priority, due, now)
  if due > now then
    redis.call("ZADD", scheduled, text_of(due_score(priority, due)), run)
    return "scheduled"
  end
  return enter(run, text_of(place(priority, due)), lock_of(run))
end
