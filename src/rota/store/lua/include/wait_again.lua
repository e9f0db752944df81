-- A run that was at work waits again, at a place of its own. If its id was enqueued meanwhile, the follow-up merges
-- into it, by its flags: counts start again only where that was asked for by name, and the time is the later of the
-- two, so that a job which enqueues itself and keeps failing still reaches its limit.
-- keys: jobs, runs, ids, named, scheduled, blocked, expiring, locked, followers, follows, merged, merges, history, waiters
-- @include deadline
-- @include followers
-- @include unindex
-- @include lanes
-- @include note
-- @include overlay
-- @include place
-- @include record
-- @include reindex
-- @include text_of

local function merge(run, r, run_place, now)
  local following, flags = follower_of(run)
  if not following then return run_place end
  local function has_flag(flag) return string.find(flags, flag, 1, true) end
  local theirs, at = redis.call("HGET", jobs, following), redis.call("ZSCORE", blocked, following)
  local ours = redis.call("HGET", jobs, run)
  local priority, due = priority_of(run_place), due_of(run_place)
  if ours and theirs then
    local record, lock = overlay(ours, string.match(theirs, "^[^\n]*\n(.*)$"), flags, has_flag("o") and deadline_of(theirs))
    redis.call("HSET", jobs, run, record)
    reindex(run, ours, record)
    local old_lock = lock_of(run)
    if lock ~= "" and lock ~= old_lock then
      if old_lock then vacate(run, old_lock) end
      redis.call("HSET", locked, run, lock)
    end
    if has_flag("o") then priority = priority_of(at) end
    if has_flag("t") or has_flag("l") then due = math.max(due, due_of(at)) end
    if has_flag("c") then r.failures, r.stalls = 0, 0 end
  end
  -- The follow-up is no more; whoever asks for it is told of the run that it became a part of.
  local id = redis.call("HGET", named, following)
  if redis.call("HGET", ids, id) == following then
    if redis.call("HEXISTS", named, run) > 0 then redis.call("HSET", ids, id, run) else redis.call("HDEL", ids, id) end
  end
  for _, key in ipairs({ jobs, named, locked, follows, history }) do redis.call("HDEL", key, following) end
  unindex({ following })
  redis.call("HDEL", followers, run)
  redis.call("ZREM", blocked, following)
  redis.call("ZREM", expiring, following)
  redis.call("HSET", merged, following, run)
  redis.call("HSET", merges, run, (redis.call("HGET", merges, run) or "") .. following .. " ")
  for client in string.gmatch(redis.call("HGET", waiters, following) or "", "%S+") do
    redis.call("PUBLISH", inbox .. client, "ended " .. queue .. " " .. following)
  end
  redis.call("HDEL", waiters, following)
  note(run, { at = now, verb = "merge" })
  return place(priority, due)
end

-- Says in which state it waits now.
local function wait_again(run, r, run_place, now)
  run_place = merge(run, r, tonumber(run_place), now)
  local due, lock = due_of(run_place), lock_of(run)
  r.state, r.place = "waiting", text_of(run_place)
  redis.call("HSET", runs, run, write_record(r))
  if due <= now then return enter(run, r.place, lock) end
  -- Whoever waits for its time does not hold its lock.
  if lock then vacate(run, lock) end
  redis.call("ZADD", scheduled, text_of(due_score(priority_of(run_place), due)), run)
  return "scheduled"
end
