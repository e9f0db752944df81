-- Promotes scheduled runs that are due, expires runs past their start deadline, and reaps runs whose lease has
-- expired. Every claim does it, so there is no leader and no timer.
-- @include count_event_of_run
-- @include emit_event
-- @include enter_lock_lanes_in_batch
-- @include find_and_detach_follow_up
-- @include format_integer
-- @include index_retain_and_announce_finished_runs
-- @include parse_and_format_run_record
-- @include pending_score
-- @include read_job_record
-- @include release_id_and_lock_of_stopped_run
-- @include release_next_runs_if_any_wait
-- @include record_and_check_claims_abandoned_by_worker
-- @include remove_waiting_run_from_indexes
-- @include scheduled_score
-- @include stall_and_retention_policy_of_run
-- @include charge_stall_and_requeue_or_fail_runs

-- scheduled -> pending, for runs that have become due. Returns true if there may be more of them.
local function promote(now, bound)
  local has_locks = redis.call("EXISTS", K.locked) > 0
  -- Without locks all are moved together, which costs a tenth.
  local most = has_locks and bound or 10 * bound
  local until_now = format_integer(highest_score_due(now))
  local due = redis.call("ZRANGE", K.scheduled, "-inf", until_now, "BYSCORE", "LIMIT", 0, most, "WITHSCORES")
  if #due == 0 then return false end
  local scores, promoted = {}, {}
  for i = 1, #due, 2 do
    local score = tonumber(due[i + 1])
    scores[#scores + 1] = format_integer(pending_score(priority_when_scheduled(score), due_when_scheduled(score)))
    scores[#scores + 1] = due[i]
    promoted[#promoted + 1] = due[i]
  end
  redis.call("ZREMRANGEBYRANK", K.scheduled, 0, #promoted - 1)
  local entering, free = {}, scores
  if has_locks then
    free = {}
    for i, lock in ipairs(redis.call("HMGET", K.locked, unpack(promoted))) do
      local at, run = scores[2 * i - 1], promoted[i]
      if lock then
        entering[#entering + 1] = { run, at, lock }
      else
        free[#free + 1], free[#free + 2] = at, run
      end
    end
  end
  if #free > 0 then redis.call("ZADD", K.pending, unpack(free)) end
  enter_lock_lanes_in_batch(entering)
  emit_event("promote", promoted)
  return #promoted >= most
end

-- waiting -> cancelled, for runs that have not started by their deadline. Returns how many; `bound` if the call has
-- handled enough.
local function expire(now, bound)
  local late = redis.call("ZRANGE", K.expiring, "-inf", format_integer(now), "BYSCORE", "LIMIT", 0, bound)
  local by_rule, ended = {}, {}
  for _, run in ipairs(late) do
    if has_handled_enough() then break end
    redis.call("ZREM", K.expiring, run)
    local is_pending = redis.call("ZSCORE", K.pending, run)
    if is_pending or redis.call("ZSCORE", K.scheduled, run) or redis.call("ZSCORE", K.blocked, run) then
      remove_waiting_run_from_indexes(run)
      detach_follow_up(run)
      local line = redis.call("HGET", K.runs, run)
      local r = line and parse_run_record(line) or new_run_record("waiting", "-")
      r.state, r.ended_at, r.reason = "cancelled", format_integer(now), "expired: it had not started in time"
      redis.call("HSET", K.runs, run, format_run_record(r))
      count_event_of_run(run, "cancelled")
      local rule = policy_of(run).finished_rule
      by_rule[rule] = by_rule[rule] or {}
      table.insert(by_rule[rule], run)
      ended[#ended + 1] = run
    end
  end
  release_next_runs_if_any_wait(ended, "cancelled", now)
  index_retain_and_announce_finished_runs(K.cancelled, "cancelled", by_rule, now)
  return has_handled_enough() and bound or #late
end

-- processing -> pending | failed, for runs whose lease has expired; also releases cancelled runs whose handlers did
-- not stop within their lease. Returns how many, `bound` if the call has handled enough, and the runs that had an
-- attempt under way.
local function reap(now, bound, longest)
  local at = format_integer(now)
  local lost, stalled_runs = redis.call("ZRANGE", K.processing, "-inf", at, "BYSCORE", "LIMIT", 0, bound), {}
  -- Where records may be long, one after another, until the call has handled enough.
  local at_once = longest and math.max(1, math.floor(C.CALL_BYTES / longest)) or bound
  for first = 1, #lost, at_once do
    if has_handled_enough() then break end
    local part = { unpack(lost, first, math.min(first + at_once - 1, #lost)) }
    charge_stall_and_requeue_or_fail_runs(part, now, "gone", function(run, r)
      local was_never_started = is_claim_abandoned(r)
      if not was_never_started then stalled_runs[#stalled_runs + 1] = run end
      return not was_never_started, was_never_started
    end)
  end
  local stopped = redis.call("ZRANGE", K.stopping, "-inf", format_integer(now), "BYSCORE", "LIMIT", 0, bound)
  for _, run in ipairs(stopped) do release_id_and_lock_of_stopped_run(run, now) end
  return has_handled_enough() and bound or math.max(#lost, #stopped), stalled_runs
end

-- Returns true if there may be more to do than the bound allowed, and the runs that were reaped. The steps share the
-- bound.
local function promote_expire_and_reap_due_runs(now, may_reap, bound, longest)
  local is_more = promote(now, bound)
  -- Before reap, so that an expired follow-up is not merged into the run before it.
  local left = bound - expire(now, bound)
  local reaped, stalled_runs = 0, {}
  if left > 0 and may_reap then
    reaped, stalled_runs = reap(now, left, longest)
    left = left - reaped
    -- A run that was taken back unstarted may have expired.
    if left > 0 then left = left - expire(now, left) end
  end
  return is_more or left <= 0, stalled_runs
end
