-- publish_prepared_runs: (none) -> scheduled | blocked | pending | cancelled
--
-- Publishes prepared runs, once they are registered with their parents: each waits for its parents, or starts if
-- all of them have succeeded, or is cancelled if one of them has failed. Sent again with the same token, it returns
-- the first reply: by then a run may have ended and been removed.
--
-- flags: allow-oom
-- KEYS jobs            hash    run -> job record: head, options, task, arguments
-- KEYS ids             hash    chosen id -> its newest run
-- KEYS blocked         zset    run -> its pending score once released
-- KEYS prepared        zset    run that is not yet visible -> since, ms
-- KEYS prepared_plans  hash    prepared run -> priority, due and expiry
-- KEYS failed_parents  prefix  `failed_parents:…`: parents that cancelled one run -> retention
-- KEYS steps           set     runs that belong to a workflow
-- KEYS once            prefix  `once:…`: idempotency token -> the run that it made
-- ARGV[1] queue
-- ARGV[2] inbox     prefix of the channels
-- ARGV[3…] runs, each followed by "!" and its idempotency token, if it has one
--
-- Returns "visible" | "missing" (it was removed) | "in_use" (its id or its token was taken meanwhile) | "blob" (its
-- blobs have expired) for each, joined by spaces; for fewer runs if the first ones are long

-- @include count_and_index_new_run
-- @include emit_event
-- @include find_unfinished_run_of_id
-- @include format_integer
-- @include gather_and_write_counts
-- @include now_ms
-- @include pending_score
-- @include read_job_record
-- @include release_cancel_or_restore_dependent
-- @include remove_prepared_run
-- @include run_once_per_token
-- @include split_and_join_job_record
-- @include wake_idle_workers
-- @include write_new_jobs
-- @rare can_take_blobs
-- @rare take_blobs

local now, outcomes, made, freed = now_ms(), {}, {}, 0
local batch = new_job_batch(K.jobs)

local function publish_one(run, token)
  local record = read_job_record(run)
  if not record then return "missing" end
  if not redis.call("ZSCORE", K.prepared, run) then return "visible" end
  local head, options = split_job_record(record)
  local id = string.match(head, "^=(%S+) ")
  local is_taken = id and redis.call("HEXISTS", K.ids, id) == 1 and redis.call("SISMEMBER", K.steps, run) == 1
  local is_made = token ~= "" and redis.call("EXISTS", K.once .. ":" .. token) == 1
  if is_taken or is_made or (id and find_unfinished_run_of_id(id)) then
    remove_prepared_run(run)
    return "in_use"
  end
  local parts = split_options(options)
  local blobs = parts[C.OPTION_BLOBS]
  if blobs ~= "" and not can_take_blobs(blobs) then
    remove_prepared_run(run)
    return "blob"
  end
  local plan = redis.call("HGET", K.prepared_plans, run) or ""
  local priority, due, deadline = string.match(plan, "^(%-?%d+) (%d+) (%S+)$")
  -- A damaged plan: it is due now.
  if not priority then priority, due, deadline = 0, now, "-" end
  local lock = parts[C.OPTION_LOCK]
  if token ~= "" then redis.call("SET", K.once .. ":" .. token, run, "PX", C.ONCE_KEPT_MS) end
  if blobs ~= "" then take_blobs(run, blobs) end
  redis.call("ZREM", K.prepared, run)
  redis.call("HDEL", K.prepared_plans, run)
  add_job(batch, run, nil, id, lock, deadline ~= "-" and deadline or nil)
  write_new_jobs(batch)
  redis.call("ZADD", K.blocked, format_integer(pending_score(priority, due)), run)
  made[#made + 1] = run
  count_and_index_new_run(run, record)
  local cause = redis.call("HRANDFIELD", K.failed_parents .. ":" .. run, 1, "WITHVALUES")
  if cause[1] then
    cancel_dependent(run, cause[1], now, cause[2])
  else
    freed = freed + release_if_ready(run, now)
  end
  return "visible"
end

local function publish()
  for at = 3, #ARGV do
    if has_handled_enough() then break end
    outcomes[#outcomes + 1] = publish_one(string.match(ARGV[at], "^(%w+)!?(.*)$"))
  end
  emit_event("enqueue", made)
  finish_cancelled_dependents(now)
  if #made > 0 then wake_idle_workers(math.max(1, math.min(freed, 8))) end
  write_counters(now)
  return table.concat(outcomes, " ")
end

return run_once_per_token(publish)
