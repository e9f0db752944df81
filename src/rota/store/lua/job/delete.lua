-- delete: scheduled | blocked | pending | processing | completed | failed | cancelled -> (none)
--
-- Removes a run and all its data. A running handler is asked to stop, and its later reports are refused; until it has
-- stopped, or its lease expires, the claim and the id of the run are kept. Sent again with the same token, it returns
-- the first reply.
--
-- flags: allow-oom
-- KEYS meta        hash  counters run, fence, totals; is_paused, server_seen, grace_until
-- KEYS runs        hash  run -> run record: state, claim, worker, times, counts
-- KEYS processing  zset  run -> deadline of its lease, ms
-- KEYS stopping    zset  run whose handler has yet to stop -> lease
-- KEYS cancelled   zset  run -> time it ended, ms
-- KEYS waiters     hash  run -> clients that wait for its end
-- KEYS completed   zset  run -> time it ended, ms
-- KEYS failed      zset  run -> time it ended, ms: the dead letters
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3] id
-- ARGV[4] run         "" for the newest of the id
--
-- Returns "deleted" | "stopping" | "missing"

-- @include emit_event
-- @include find_and_detach_follow_up
-- @include find_run_by_id
-- @include format_integer
-- @include increment_counter
-- @include now_ms
-- @include parse_and_format_run_record
-- @include read_fields_of_run_record
-- @include release_next_runs_if_any_wait
-- @include remove_runs_except_from_state_indexes
-- @include remove_waiting_run_from_indexes
-- @include run_once_per_token
-- @include stop_retaining_run
-- @include wake_idle_workers

local function delete()
  local found = find_run_by_id(id, run)
  if not found then return "missing" end
  local outcome, now = "deleted", now_ms()
  local state = state_in_record(redis.call("HGET", K.runs, found))
  local is_unfinished = state == "waiting" or state == "processing"
  local lease = redis.call("ZSCORE", K.processing, found)
  if lease then
    local r = parse_run_record(redis.call("HGET", K.runs, found))
    outcome = "stopping"
    r.state, r.ended_at = "cancelled", format_integer(now)
    redis.call("HSET", K.runs, found, format_run_record(r))
    redis.call("ZADD", K.stopping, lease, found)
    redis.call("PUBLISH", inbox .. r.worker, "stop " .. queue .. " " .. found .. " " .. r.claim)
  end
  if state == "waiting" then
    wake_idle_workers(remove_waiting_run_from_indexes(found))
    detach_follow_up(found)
  end
  local clients = redis.call("HGET", K.waiters, found)
  redis.call("ZREM", K.processing, found)
  for of_state, index in pairs({ completed = K.completed, failed = K.failed, cancelled = K.cancelled }) do
    stop_retaining_run(found, of_state, index)
  end
  if is_unfinished and outcome == "deleted" then
    wake_idle_workers(release_next_runs_if_any_wait({ found }, "deleted", now))
  end
  remove_runs_except_from_state_indexes({ found })
  increment_counter(K.meta, "deleted", 1)
  emit_event("delete", { found })
  for client in string.gmatch(clients or "", "%S+") do
    redis.call("PUBLISH", inbox .. client, "ended " .. queue .. " " .. found)
  end
  return outcome
end

return run_once_per_token(delete)
