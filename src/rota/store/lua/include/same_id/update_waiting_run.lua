-- Updates a waiting run whose id is enqueued again, as far as the flags allow; see `merge_new_job_into_record`.
-- @include add_history_entry
-- @include blobs_in_record
-- @include enter_and_leave_lock_lane
-- @include format_integer
-- @include merge_new_job_into_record
-- @include parse_and_format_run_record
-- @include parse_time_argument
-- @include pending_score
-- @include put_into_scheduled_pending_or_lock_lane
-- @include record_longest_job
-- @include reindex_changed_search_terms
-- @include remove_waiting_run_from_indexes
-- @include scheduled_score
-- @include split_and_join_job_record
-- @rare can_take_blobs
-- @rare replace_blobs_of_run

-- Returns why a run cannot be updated to the new job, or nil. The rest of a deleted run has no parents, so no job
-- with parents may follow it: that job would not wait for them.
local function same_id_mismatch(run, rest)
  local record = redis.call("HGET", K.jobs, run)
  local _, new, new_task = split_job_record("\n" .. rest)
  if not record then return split_options(new)[C.OPTION_PARENTS] ~= "" and "after" or nil end
  local _, old, task = split_job_record(record)
  if task ~= new_task then return "task" end
  if split_options(old)[C.OPTION_PARENTS] ~= split_options(new)[C.OPTION_PARENTS] then return "after" end
  local blobs = split_options(new)[C.OPTION_BLOBS]
  if blobs ~= "" and not can_take_blobs(blobs) then return "blob" end
  return nil
end

-- Returns the score of a waiting run, whichever index it is in.
local function waiting_score(run)
  local at = redis.call("ZSCORE", K.pending, run) or redis.call("ZSCORE", K.blocked, run)
  if at then return tonumber(at) end
  local score = tonumber(redis.call("ZSCORE", K.scheduled, run) or 100)
  return pending_score(priority_when_scheduled(score), due_when_scheduled(score))
end

-- Returns how many runs became pending.
local function update_waiting_run(run, flags, priority, due, expiry, rest, now)
  local before_it = redis.call("HGET", K.jobs, run)
  local new_deadline = has_flag(flags, C.FLAG_OPTIONS) and expiry ~= "" and parse_time_argument(expiry, now)
  local record, lock = merge_new_job_into_record(before_it, rest, flags, new_deadline)
  redis.call("HSET", K.jobs, run, record)
  record_longest_job(#record, K.jobs)
  reindex_changed_search_terms(run, before_it, record)
  if blobs_in_record(before_it) ~= "" or blobs_in_record(record) ~= "" then replace_blobs_of_run(run, record) end
  local line = redis.call("HGET", K.runs, run)
  local r = line and parse_run_record(line)
  if r and (has_flag(flags, C.FLAG_RESET_COUNTS) or has_flag(flags, C.FLAG_RESET_COUNTS_UNLESS_MERGED)) then
    r.failures, r.stalls = 0, 0
    redis.call("HSET", K.runs, run, format_run_record(r))
  end

  local before = waiting_score(run)
  local wanted, old_due = parse_time_argument(due, now), due_in_score(before)
  local new_due = old_due
  local is_later = has_flag(flags, C.FLAG_RUN_AT_IF_LATER) and wanted > old_due
  local is_earlier = has_flag(flags, C.FLAG_RUN_AT_IF_EARLIER) and wanted < old_due
  if has_flag(flags, C.FLAG_RUN_AT) or is_later or is_earlier then
    new_due = wanted
  end
  local max_wait = string.match(flags, C.MAX_WAIT_FLAG .. "(%d+)")
  local enqueued_at = max_wait and string.match(before_it, "^%S+ (%d+)\n")
  if enqueued_at then
    -- A run that waits for its retry is not postponed beyond that time, nor retried earlier.
    local latest = enqueued_at + max_wait
    if r and tonumber(r.attempt) > 0 then latest = math.max(latest, old_due) end
    new_due = math.min(new_due, latest)
  end
  local after = pending_score(has_flag(flags, C.FLAG_OPTIONS) and priority or priority_in_score(before), new_due)
  local must_start_by = redis.call("ZSCORE", K.expiring, run)
  if has_flag(flags, C.FLAG_OPTIONS) then
    must_start_by = (not r or tonumber(r.attempt) == 0) and new_deadline and format_integer(new_deadline)
  end

  local freed, old_lock = 0, lock_of(run)
  local new_lock = lock ~= "" and lock or old_lock
  if after ~= before or new_lock ~= old_lock then
    if redis.call("HEXISTS", K.follows, run) > 0 or redis.call("SISMEMBER", K.has_parents, run) > 0 then
      redis.call("ZADD", K.blocked, format_integer(after), run)
    else
      freed = remove_waiting_run_from_indexes(run)
    end
    if new_lock then redis.call("HSET", K.locked, run, new_lock) end
    if not redis.call("ZSCORE", K.blocked, run) then
      local state = put_into_scheduled_pending_or_lock_lane(run, priority_in_score(after), new_due, now)
      if state == "pending" then freed = freed + 1 end
    end
  end
  if must_start_by then
    redis.call("ZADD", K.expiring, must_start_by, run)
  else
    redis.call("ZREM", K.expiring, run)
  end
  add_history_entry(run, { at = now, verb = "update" })
  return freed
end
