-- Requeues a run that was processing, with a new score. If its id was enqueued meanwhile, the follow-up is merged
-- into it, by its flags: counts restart only if that was asked for by name, and the later of both times
-- counts, so that a job which enqueues itself and keeps failing still reaches its limit.
-- @include add_history_entry
-- @include blobs_in_record
-- @include enter_and_leave_lock_lane
-- @include find_and_detach_follow_up
-- @include format_integer
-- @include merge_new_job_into_record
-- @include parse_and_format_run_record
-- @include pending_score
-- @include record_longest_job
-- @include reindex_changed_search_terms
-- @include remove_runs_from_task_index_and_terms
-- @include scheduled_score
-- @include start_deadline_of_job
-- @rare replace_blobs_of_run

-- Remembers that a follow-up is a part of the run, for handles on it and its dependents. Beyond so many, the oldest
-- one without dependents is no longer known: a job may enqueue its own id again and again, and never end.
local function remember_merged(run, following)
  local names = {}
  for name in string.gmatch(redis.call("HGET", K.merged_from, run) or "", "%S+") do names[#names + 1] = name end
  if #names >= C.MERGED_KEPT then
    local oldest = { unpack(names, 1, C.MERGED_KEPT) }
    for i, has_dependents in ipairs(redis.call("SMISMEMBER", K.has_dependents, unpack(oldest))) do
      if has_dependents == 0 then
        redis.call("HDEL", K.merged_into, table.remove(names, i))
        break
      end
    end
  end
  names[#names + 1] = following
  redis.call("HSET", K.merged_into, following, run)
  redis.call("HSET", K.merged_from, run, table.concat(names, " "))
end

local function merge_follow_up(run, r, run_score, now)
  local following, flags = follow_up_of(run)
  if not following then return run_score end
  local theirs, at = redis.call("HGET", K.jobs, following), redis.call("ZSCORE", K.blocked, following)
  local ours = redis.call("HGET", K.jobs, run)
  local priority, due = priority_in_score(run_score), due_in_score(run_score)
  if ours and theirs then
    local deadline = has_flag(flags, C.FLAG_OPTIONS) and start_deadline_of(theirs)
    local record, lock = merge_new_job_into_record(ours, string.match(theirs, "^[^\n]*\n(.*)$"), flags, deadline)
    redis.call("HSET", K.jobs, run, record)
    record_longest_job(#record, K.jobs)
    reindex_changed_search_terms(run, ours, record)
    if blobs_in_record(ours) ~= "" or blobs_in_record(theirs) ~= "" then
      replace_blobs_of_run(run, record, following)
    end
    local old_lock = lock_of(run)
    if lock ~= "" and lock ~= old_lock then
      if old_lock then leave_lane(run, old_lock) end
      redis.call("HSET", K.locked, run, lock)
    end
    if has_flag(flags, C.FLAG_OPTIONS) then priority = priority_in_score(at) end
    if has_flag(flags, C.FLAG_RUN_AT) or has_flag(flags, C.FLAG_RUN_AT_IF_LATER) then
      due = math.max(due, due_in_score(at))
    end
    if has_flag(flags, C.FLAG_RESET_COUNTS) then r.failures, r.stalls = 0, 0 end
  end
  -- The follow-up is gone; its name leads to the run that it was merged into.
  local id = redis.call("HGET", K.named, following)
  if redis.call("HGET", K.ids, id) == following then
    if redis.call("HEXISTS", K.named, run) > 0 then
      redis.call("HSET", K.ids, id, run)
    else
      redis.call("HDEL", K.ids, id)
    end
  end
  for _, key in ipairs({ K.jobs, K.named, K.locked, K.follows, K.history }) do redis.call("HDEL", key, following) end
  remove_runs_from_task_index_and_terms({ following })
  redis.call("HDEL", K.follow_ups, run)
  redis.call("ZREM", K.blocked, following)
  redis.call("ZREM", K.expiring, following)
  remember_merged(run, following)
  for client in string.gmatch(redis.call("HGET", K.waiters, following) or "", "%S+") do
    redis.call("PUBLISH", inbox .. client, "ended " .. queue .. " " .. following)
  end
  redis.call("HDEL", K.waiters, following)
  add_history_entry(run, { at = now, verb = "merge" })
  return pending_score(priority, due)
end

-- Returns its state.
local function requeue_run_and_merge_follow_up(run, r, run_score, now)
  run_score = merge_follow_up(run, r, tonumber(run_score), now)
  local due, lock = due_in_score(run_score), lock_of(run)
  r.state, r.score = "waiting", format_integer(run_score)
  redis.call("HSET", K.runs, run, format_run_record(r))
  if due <= now then return enter_lane(run, r.score, lock) end
  -- A run that waits for its time does not hold its lock.
  if lock then leave_lane(run, lock) end
  redis.call("ZADD", K.scheduled, format_integer(scheduled_score(priority_in_score(run_score), due)), run)
  return "scheduled"
end
