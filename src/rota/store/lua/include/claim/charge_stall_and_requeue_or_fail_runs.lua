-- Takes runs back from a worker that is gone or gives them up: their owner. A stall is charged, unless the owner
-- lives and started nothing of this claim. A run with too many stalls, or that may run only once, fails; else it is
-- pending again with its old score. `owner` is "reports" if the owner itself reports it: then the claim stays in the
-- record, so that the report sent again is recognised. From an owner that is "gone" the claim is removed. A run that
-- never started had no attempt, and keeps its start deadline. `charge_of(run, record)` returns whether a stall is
-- charged, whether the run never started, and a sentence about its process if that died. Returns how many runs became
-- pending.
-- @include add_history_entry
-- @include count_event_of_run
-- @include emit_event
-- @include enqueue_failure_jobs
-- @include format_integer
-- @include gather_and_write_counts
-- @include group_dead_letters_by_error
-- @include index_retain_and_announce_finished_runs
-- @include parse_and_format_run_record
-- @include release_next_runs_if_any_wait
-- @include requeue_run_and_merge_follow_up
-- @include stall_and_retention_policy_of_run
-- @include start_deadline_of_job

local function charge_stall_and_requeue_or_fail_runs(lost, now, owner, charge_of)
  if #lost == 0 then return 0 end
  local failed_by_rule, back, released, lines, dead = {}, {}, {}, {}, {}
  local has_bonds = redis.call("EXISTS", K.locked, K.follow_ups) > 0
  for _, run in ipairs(lost) do
    local line = redis.call("HGET", K.runs, run)
    if line then
      local r = parse_run_record(line)
      local options = policy_of(run)
      local charged, is_unstarted, what_happened = charge_of(run, r)
      if owner == "gone" then r.claim = "-" end
      local task
      local entry = { at = now, verb = charged and "reap" or "return", worker = r.worker, note = what_happened }
      if is_unstarted then
        r.attempt, r.claimed_at = math.max(0, r.attempt - 1), "-"
      else
        entry.attempt, entry.since = tonumber(r.attempt), tonumber(r.claimed_at)
      end
      if charged then
        r.stalls = r.stalls + 1
        task = count_event_of_run(run, "stalled")
      else
        r.handbacks = r.handbacks + 1
      end
      if charged and (options.at_most_once or r.stalls > options.max_stalls) then
        r.state, r.ended_at = "failed", format_integer(now)
        local who = what_happened and "its process died" or "its worker vanished"
        r.reason = who .. (options.at_most_once and ", and it may run only once" or " too often")
        failed_by_rule[options.failed_rule] = failed_by_rule[options.failed_rule] or {}
        table.insert(failed_by_rule[options.failed_rule], run)
        dead[#dead + 1] = run
        count(task, "dead")
        local err = cjson.encode({
          kind = "stall", type = "StallError",
          message = "attempt " .. r.attempt .. " ended without a report: "
            .. (what_happened and what_happened .. ", of worker " .. r.worker or "worker " .. r.worker .. " vanished")
            .. " (" .. r.reason .. ")",
        })
        redis.call("HSET", K.errors, run, err)
        group_dead_letters_by_error(run, err, true, now)
        entry.state = "failed"
      else
        r.state = "waiting"
        released[#released + 1] = run
        if has_bonds then
          entry.state = requeue_run_and_merge_follow_up(run, r, r.score, now)
        else
          back[#back + 1], back[#back + 2] = r.score, run
          entry.state = "pending"
        end
        local deadline = is_unstarted and r.attempt == 0 and start_deadline_of(redis.call("HGET", K.jobs, run))
        if deadline then redis.call("ZADD", K.expiring, format_integer(deadline), run) end
      end
      lines[#lines + 1], lines[#lines + 2] = run, format_run_record(r)
      add_history_entry(run, entry)
      redis.call("HDEL", K.progress, run)
    end
  end
  redis.call("ZREM", K.processing, unpack(lost))
  if #lines == 0 then return 0 end
  redis.call("HSET", K.runs, unpack(lines))
  if #back > 0 then redis.call("ZADD", K.pending, unpack(back)) end
  emit_event("reap", released)
  local alerted = enqueue_failure_jobs(dead, now)
  local freed = release_next_runs_if_any_wait(dead, "failed", now)
  index_retain_and_announce_finished_runs(K.failed, "failed", failed_by_rule, now)
  return #released + alerted + freed
end
