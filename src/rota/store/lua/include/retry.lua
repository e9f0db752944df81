-- Puts a run that has just left `processing` back to wait for `due`, at a new place.
-- keys: runs, pending, scheduled
-- @include place
-- @include record
-- @include text_of

local function retry(run, r, due, now)
  local priority = priority_of(r.place)
  r.state, r.place = "waiting", text_of(place(priority, due))
  redis.call("HSET", runs, run, write_record(r))
  if due <= now then
    redis.call("ZADD", pending, r.place, run)
    return "pending"
  end
  redis.call("ZADD", scheduled, text_of(due_score(priority, due)), run)
  return "scheduled"
end
