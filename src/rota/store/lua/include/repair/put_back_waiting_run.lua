-- Puts a waiting run back into the index that it belongs to: blocked behind the run before it or behind its parents,
-- else scheduled, pending, or the lane of its lock. The time it was due is in its run record, if it was claimed
-- before; a new job has it in its index alone, so without that it is due now.
-- @include format_integer
-- @include now_ms
-- @include paused_task_of_run
-- @include pending_score
-- @include put_into_scheduled_pending_or_lock_lane
-- @include scheduled_score

local function priority_of(f)
  return tonumber(string.match(f.parts[C.OPTION_GENERAL] or "", '"priority":(%-?%d+)') or 0)
end

-- The pending score of a run: from its indexes, its run record, or its job record.
local function score_of_waiting_run(f)
  local score = tonumber(f.scores.scheduled)
  if score then return pending_score(priority_when_scheduled(score), due_when_scheduled(score)) end
  score = tonumber(f.scores.blocked or f.scores.pending or (f.has_record and f.r.score))
  if score then return score end
  return pending_score(priority_of(f), tonumber(string.match(f.head or "", " (%d+)$") or now_ms()))
end

-- Returns why a run is blocked: "same_id", "parents", "task_paused"; nil if nothing but its lock can block it.
local function why_blocked(run)
  local holder = redis.call("HGET", K.follows, run)
  if holder and string.match(redis.call("HGET", K.follow_ups, holder) or "", "^%S+") == run
    and (redis.call("ZSCORE", K.processing, holder) or redis.call("ZSCORE", K.stopping, holder)) then
    return "same_id"
  end
  if redis.call("EXISTS", K.parents .. ":" .. run) == 1 then return "parents" end
  return paused_task_of(run) and "task_paused" or nil
end

-- Returns how many runs became pending.
local function put_back_waiting_run(run, f)
  -- Its place in the lane of its lock depends on its score.
  if f.lock ~= "" then redis.call("HSET", K.locked, run, f.lock) end
  local score = score_of_waiting_run(f)
  if why_blocked(run) then
    redis.call("ZADD", K.blocked, format_integer(score), run)
    return 0
  end
  local state = put_into_scheduled_pending_or_lock_lane(run, priority_in_score(score), due_in_score(score), now_ms())
  return state == "pending" and 1 or 0
end
