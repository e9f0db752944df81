-- Keeps runs of paused tasks out of claims. The claim that meets one at the front of `pending` moves it to the set of
-- its task, where it is blocked, so that each is met once and none holds up the runs behind it. A run that is set
-- aside frees its lock. When its task is resumed, claims move the runs back, with their old scores.
-- @include emit_event
-- @include enter_and_leave_lock_lane
-- @include find_task_of_run
-- @include queue_key_prefix

-- Passes over the front of `pending`: each pass may free locks, whose next runs belong further in front.
local PASSES = 8

-- Returns the names of the paused tasks, a set of them, and the names of those that are being resumed.
local function read_paused_tasks()
  local paused, is_paused, resumed = {}, {}, {}
  local fields = redis.call("HGETALL", queue_key_prefix .. "paused_tasks")
  for i = 1, #fields, 2 do
    if fields[i + 1] == "resuming" then
      resumed[#resumed + 1] = fields[i]
    else
      paused[#paused + 1], is_paused[fields[i]] = fields[i], true
    end
  end
  return paused, is_paused, resumed
end

-- pending -> blocked, for the runs of paused tasks among the first `limit`. Returns how many of the first runs may be
-- leased, and whether there may be more to set aside before the others.
local function set_aside(limit, bound, paused, is_paused)
  local task_of, has_locks = task_finder(paused), redis.call("EXISTS", K.locked) > 0
  local allowed, moved = 0, {}
  for _ = 1, PASSES do
    allowed = 0
    local members, freed, found = redis.call("ZRANGE", K.pending, 0, limit - 1, "WITHSCORES"), 0, 0
    for i = 1, #members, 2 do
      local run, run_score, task = members[i], members[i + 1], task_of(members[i])
      if not (task and is_paused[task]) then
        if found == 0 then allowed = allowed + 1 end
      elseif #moved < bound then
        found = found + 1
        moved[#moved + 1] = run
        redis.call("ZREM", K.pending, run)
        redis.call("ZADD", K.blocked, run_score, run)
        redis.call("ZADD", queue_key_prefix .. "paused_runs:" .. task, run_score, run)
        local lock = has_locks and lock_of(run)
        if lock then freed = freed + leave_lane(run, lock) end
      else
        emit_event("set_aside", moved)
        return freed == 0 and allowed or 0, true
      end
    end
    if found == 0 then
      emit_event("set_aside", moved)
      return allowed, false
    end
  end
  emit_event("set_aside", moved)
  return 0, true
end

-- blocked -> pending, for up to `bound` runs of a task that is resumed. Returns whether there may be more.
local function put_back(task, bound)
  local key, back = queue_key_prefix .. "paused_runs:" .. task, {}
  local members = redis.call("ZRANGE", key, 0, bound - 1, "WITHSCORES")
  for i = 1, #members, 2 do
    local run = members[i]
    back[#back + 1] = run
    redis.call("ZREM", K.blocked, run)
    enter_lane(run, members[i + 1], lock_of(run))
  end
  if #back > 0 then redis.call("ZREM", key, unpack(back)) end
  emit_event("put_back", back)
  if redis.call("EXISTS", key) > 0 then return true end
  redis.call("HDEL", queue_key_prefix .. "paused_tasks", task)
  if redis.call("EXISTS", queue_key_prefix .. "paused_tasks") == 0 then
    redis.call("HDEL", K.meta, "has_paused_tasks")
  end
  return false
end

-- Puts back runs of resumed tasks, then sets aside those of paused ones; returns as `set_aside` does.
local function set_aside_runs_of_paused_tasks(limit, bound)
  local paused, is_paused, resumed = read_paused_tasks()
  local is_more = false
  for _, task in ipairs(resumed) do
    is_more = put_back(task, bound) or is_more
  end
  if #paused == 0 then return limit, is_more end
  local allowed, is_more_aside = set_aside(limit, bound, paused, is_paused)
  return allowed, is_more or is_more_aside
end
