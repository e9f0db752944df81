-- cancel: scheduled | blocked | pending | processing -> cancelled
--
-- Cancels a run by request. A run that is processing is cancelled at once and its worker is asked to stop the
-- handler; until the worker confirms that, or the lease expires, the run is also in `stopping`. Sent again with the
-- same token, it returns the first reply.
--
-- flags: allow-oom
-- KEYS runs        hash  run -> run record: state, claim, worker, times, counts
-- KEYS processing  zset  run -> deadline of its lease, ms
-- KEYS stopping    zset  run whose handler has yet to stop -> lease
-- KEYS follows     hash  follow-up -> the run that it waits for
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3] id
-- ARGV[4] run         "" for the newest of the id
-- ARGV[5] reach       "waiting" leaves a run that is processing alone; "any" does not; "earlier" cancels the run that
--         this one waits for as its follow-up, if there is one
-- ARGV[6] reason
--
-- Returns "cancelled" | "stopping" | "missing" | "processing" if `reach` excludes it | "ended" and the state

-- @include end_run_as_cancelled
-- @include find_and_detach_follow_up
-- @include find_run_by_id
-- @include format_integer
-- @include gather_and_write_counts
-- @include now_ms
-- @include parse_and_format_run_record
-- @include release_next_runs_if_any_wait
-- @include remove_waiting_run_from_indexes
-- @include run_once_per_token
-- @include wake_idle_workers

local function cancel()
  local found = find_run_by_id(id, run)
  if found and reach == "earlier" then found = redis.call("HGET", K.follows, found) end
  if not found then return "missing" end
  local now, line = now_ms(), redis.call("HGET", K.runs, found)
  local r = line and parse_run_record(line) or new_run_record("waiting", "-")
  if r.state ~= "waiting" and r.state ~= "processing" then return "ended " .. r.state end
  if r.state == "processing" and reach == "waiting" then return "processing" end

  local outcome = "cancelled"
  if r.state == "processing" then
    local lease = redis.call("ZSCORE", K.processing, found)
    redis.call("ZREM", K.processing, found)
    outcome = "stopping"
    redis.call("ZADD", K.stopping, lease or format_integer(now), found)
    redis.call("PUBLISH", inbox .. r.worker, "stop " .. queue .. " " .. found .. " " .. r.claim)
  else
    wake_idle_workers(remove_waiting_run_from_indexes(found))
    detach_follow_up(found)
    wake_idle_workers(release_next_runs_if_any_wait({ found }, "cancelled", now))
  end
  end_run_as_cancelled(found, r, reason, now)
  write_counters(now)
  return outcome
end

return run_once_per_token(cancel)
