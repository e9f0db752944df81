-- Releases, cancels or restores a dependent, as the outcome of a parent requires.
-- @include add_history_entry
-- @include collect_and_fill_parent_results
-- @include end_run_as_cancelled
-- @include format_integer
-- @include index_retain_and_announce_finished_runs
-- @include parse_and_format_run_record
-- @include pending_score
-- @include put_into_scheduled_pending_or_lock_lane
-- @include read_job_record
-- @include release_next_runs_if_any_wait
-- @include split_and_join_job_record
-- @include stall_and_retention_policy_of_run
-- @include start_deadline_of_job
-- @include stop_retaining_run

-- `finish_cancelled_dependents` ends all dependents that one call has cancelled.
local cancelled_dependents, cancelled_by_rule = {}, {}

local function cancel_blocked(run, score, reason, kept_by, now)
  local line = redis.call("HGET", K.runs, run)
  local r = line and parse_run_record(line) or new_run_record("waiting", score)
  r.score = score
  redis.call("ZREM", K.blocked, run)
  redis.call("ZREM", K.expiring, run)
  write_cancelled(run, r, reason, now)
  cancelled_by_rule[kept_by] = cancelled_by_rule[kept_by] or {}
  table.insert(cancelled_by_rule[kept_by], run)
  cancelled_dependents[#cancelled_dependents + 1] = run
end

-- Releases a dependent that has no unmet parents; cancels it if the results that it takes are too long. Returns how
-- many runs became pending.
local function release_if_ready(run, now)
  local results = parent_results_of(run)
  -- A key that is named twice counts twice: 1 means unmet parents, 2 results, 3 both.
  local found = redis.call("EXISTS", K.parents .. ":" .. run, results, results)
  if found % 2 == 1 then return 0 end
  local at = redis.call("ZSCORE", K.blocked, run)
  if not at then return 0 end
  local limit = found == 2 and fill_parent_results(run)
  if limit then
    local reason = "its arguments would be longer than " .. format_integer(limit)
      .. " bytes with the results of the jobs before it: return references to large data, or raise max_payload"
    cancel_blocked(run, at, reason, policy_of(run).finished_rule, now)
    return 0
  end
  redis.call("SREM", K.has_parents, run)
  redis.call("ZREM", K.blocked, run)
  local state = put_into_scheduled_pending_or_lock_lane(run, priority_in_score(at), due_in_score(at), now)
  return state == "pending" and 1 or 0
end

-- Returns the rule that keeps a run longer.
local function longer(rule, other)
  local function age(of) return tonumber(string.match(of, "^%d+") or -1) end
  return age(other) > age(rule) and other or rule
end

-- Cancels a dependent of a parent that did not succeed; in time, its own dependents follow. It is kept as long as the
-- parent, whose redrive restores it: "!" in `failed_parents` marks that as the reason, and has the retention rule.
local function cancel_dependent(run, name, now, rule)
  local at = redis.call("ZSCORE", K.blocked, run)
  if not at then return end
  redis.call("HSET", K.failed_parents .. ":" .. run, "!", rule)
  local kept_by = longer(policy_of(run).finished_rule, rule)
  cancel_blocked(run, at, "comes after " .. name .. ", which did not succeed", kept_by, now)
end

local function finish_cancelled_dependents(now)
  release_next_runs_if_any_wait(cancelled_dependents, "cancelled", now)
  index_retain_and_announce_finished_runs(K.cancelled, "cancelled", cancelled_by_rule, now)
  cancelled_dependents, cancelled_by_rule = {}, {}
end

-- Restores a dependent whose failed parents have all been redriven, if they were why it was cancelled and its id has
-- no newer run. Returns true if it waits again. One that is too late by now expires next.
local function restore_dependent(run, now)
  if #cancelled_dependents > 0 then finish_cancelled_dependents(now) end
  local key = K.failed_parents .. ":" .. run
  if redis.call("HLEN", key) ~= 1 or redis.call("HEXISTS", key, "!") == 0 then return false end
  local record, line = read_job_record(run), redis.call("HGET", K.runs, run)
  if not record or not line then return false end
  local r = parse_run_record(line)
  local head, options = split_job_record(record)
  local id, suffix = redis.call("HGET", K.named, run), string.match(head or "", "^%S+")
  if not suffix or r.state ~= "cancelled" then return false end
  local newest = redis.call("HGET", K.ids, id or run .. "-" .. suffix)
  if newest ~= (id and run or false) then return false end
  local lock = split_options(options)[C.OPTION_LOCK]
  if lock ~= "" then redis.call("HSET", K.locked, run, lock) end
  redis.call("UNLINK", key)
  stop_retaining_run(run, "cancelled", K.cancelled)
  r.state, r.ended_at, r.reason = "waiting", "-", ""
  redis.call("HSET", K.runs, run, format_run_record(r))
  redis.call("ZADD", K.blocked, r.score, run)
  local deadline = start_deadline_of(record)
  if deadline then redis.call("ZADD", K.expiring, format_integer(deadline), run) end
  add_history_entry(run, { at = now, verb = "restore", state = "blocked" })
  return true
end
