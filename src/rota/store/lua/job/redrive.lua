-- redrive: failed -> blocked | pending
--
-- Enqueues dead letters again: counts restart, attempts go on growing, and each gets a new score. A dead letter whose
-- id has a newer unfinished run stays. Sent again with the same token, it returns the first reply.
--
-- KEYS meta    hash  counters run, fence, totals; is_paused, server_seen, grace_until
-- KEYS runs    hash  run -> run record: state, claim, worker, times, counts
-- KEYS ids     hash  chosen id -> its newest run
-- KEYS named   hash  run -> its chosen id
-- KEYS jobs    hash  run -> job record: head, options, task, arguments
-- KEYS locked  hash  unfinished run -> the lock it asked for
-- KEYS failed  zset  run -> time it ended, ms: the dead letters
-- ARGV[1] queue
-- ARGV[2] inbox      prefix of the channels
-- ARGV[3…] two for each job: id, run ("" for the newest of the id)
--
-- Returns "redriven" | "missing" | "in_use" | the state that forbids it, for each job, joined by spaces; for fewer
-- jobs if the first ones are long

-- @include add_and_remove_search_terms
-- @include add_history_entry
-- @include emit_event
-- @include enter_and_leave_lock_lane
-- @include find_run_by_id
-- @include find_unfinished_run_of_id
-- @include format_integer
-- @include increment_counter
-- @include now_ms
-- @include parse_and_format_run_record
-- @include pending_score
-- @include read_job_record
-- @include run_once_per_token
-- @include split_and_join_job_record
-- @include stop_retaining_run
-- @include wake_idle_workers
-- @include write_outcomes_to_outbox

local function is_of_group(word) return string.find(word, "^group=") end

local function redrive_one(id, run, now)
  local found = find_run_by_id(id, run)
  if not found then return "missing" end
  local line = redis.call("HGET", K.runs, found)
  local r = line and parse_run_record(line)
  if not r or r.state ~= "failed" then return r and r.state or "waiting" end
  local holder = find_unfinished_run_of_id(id)
  if holder and holder ~= found then return "in_use" end
  -- An id that was not chosen begins with its run, so it needs no entry, unless it was chosen later.
  if redis.call("HEXISTS", K.named, found) > 0 then
    redis.call("HSET", K.ids, id, found)
  else
    redis.call("HDEL", K.ids, id)
  end
  r.state, r.claim, r.ended_at, r.reason = "waiting", "-", "-", ""
  r.failures, r.stalls, r.snoozes, r.handbacks = 0, 0, 0, 0
  r.score = format_integer(pending_score(priority_in_score(r.score), now))
  redis.call("HSET", K.runs, found, format_run_record(r))
  stop_retaining_run(found, "failed", K.failed)
  drop_terms(found, is_of_group)
  local _, options = split_job_record(redis.call("HGET", K.jobs, found))
  local lock = split_options(options)[C.OPTION_LOCK]
  if lock ~= "" then redis.call("HSET", K.locked, found, lock) end
  local state = enter_lane(found, r.score, lock ~= "" and lock or nil)
  write_outcomes_to_outbox({ found }, "waiting", now)
  add_history_entry(found, { at = now, verb = "redrive", state = state })
  return "redriven", found
end

local function redrive()
  local now, outcomes, moved = now_ms(), {}, {}
  for at = 3, #ARGV, 2 do
    if has_handled_enough() then break end
    local outcome, found = redrive_one(ARGV[at], ARGV[at + 1], now)
    outcomes[#outcomes + 1] = outcome
    moved[#moved + 1] = found
  end
  if #moved > 0 then
    increment_counter(K.meta, "redriven", #moved)
    emit_event("redrive", moved)
    wake_idle_workers(math.min(#moved, 8))
  end
  return table.concat(outcomes, " ")
end

return run_once_per_token(redrive)
