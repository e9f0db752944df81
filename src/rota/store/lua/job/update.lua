-- update: scheduled | blocked | pending | failed -> scheduled | blocked | pending | failed
--
-- Changes a waiting run: its arguments, priority and time. Of a dead letter only the arguments, for its next redrive.
-- A record that has changed since the caller read it is left alone. Sent again with the same token, it returns the
-- first reply.
--
-- KEYS jobs  hash  run -> job record: head, options, task, arguments
-- KEYS runs  hash  run -> run record: state, claim, worker, times, counts
-- ARGV[1] queue
-- ARGV[2] inbox     prefix of the channels
-- ARGV[3] id
-- ARGV[4] run       "" for the newest of the id
-- ARGV[5] seen      SHA-1 of the record that the caller read
-- ARGV[6] flags     parts to replace, see `merge_new_job_into_record`
-- ARGV[7] priority
-- ARGV[8] due       moment
-- ARGV[9] expiry    moment, or ""
-- ARGV[10] rest     of the record: options, task, arguments
--
-- Returns "updated" | "missing" | "changed" since it was read | "processing" | "ended" and the state

-- @include add_history_entry
-- @include blobs_in_record
-- @include emit_event
-- @include find_run_by_id
-- @include merge_new_job_into_record
-- @include now_ms
-- @include read_fields_of_run_record
-- @include record_longest_job
-- @include reindex_changed_search_terms
-- @include run_once_per_token
-- @include update_waiting_run
-- @include wake_idle_workers
-- @rare replace_blobs_of_run

local function carry_out()
  local found = find_run_by_id(id, run)
  if not found then return "missing" end
  local line = redis.call("HGET", K.runs, found)
  local state = state_in_record(line)
  if state == "processing" then return "processing" end
  if state ~= "waiting" and state ~= "failed" then return "ended " .. state end
  local record = redis.call("HGET", K.jobs, found)
  if redis.sha1hex(record) ~= seen then return "changed" end

  local now = now_ms()
  if state == "failed" then
    local new = merge_new_job_into_record(record, rest, "d")
    redis.call("HSET", K.jobs, found, new)
    record_longest_job(#new, K.jobs)
    reindex_changed_search_terms(found, record, new)
    if blobs_in_record(record) ~= "" then replace_blobs_of_run(found, new) end
    add_history_entry(found, { at = now, verb = "update" })
  else
    -- At least one worker is woken: another run may be the next to fall due.
    wake_idle_workers(math.max(1, update_waiting_run(found, flags, tonumber(priority), due, expiry, rest, now)))
  end
  emit_event("update", { found })
  return "updated"
end

return run_once_per_token(carry_out)
