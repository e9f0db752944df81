-- Resolves a job whose id has an unfinished run: updates that run, if the caller wants it and it is not processing.
-- Returns the run; the outcome ("again", "in_use", "updated", or why not; nil where a follow-up is to be made, or
-- there is no such run); and how many runs became pending.
-- @include add_follow_up_to_processing_run
-- @include find_and_detach_follow_up
-- @include find_unfinished_run_of_id
-- @include update_waiting_run

local function resolve_job_with_unfinished_id(id, flags, token, priority, due, expiry, rest, now)
  local earlier_run = token ~= "" and redis.call("GET", K.once .. ":" .. token)
  if earlier_run then return earlier_run, "again", 0 end
  local holder, is_busy = find_unfinished_run_of_id(id)
  if not holder then return nil, nil, 0 end
  local mismatch = (flags ~= "-" or string.find(token, "~", 1, true)) and same_id_mismatch(holder, rest)
  -- A throttled call, whose token has a `~`, never returns the run of another task.
  local refusal = flags == "-" and (mismatch == "task" and "task" or "in_use") or mismatch
  if refusal or is_busy then return holder, refusal, 0 end
  local freed = update_waiting_run(holder, flags, tonumber(priority), due, expiry, rest, now)
  local before_it = redis.call("HGET", K.follows, holder)
  if before_it then
    -- The flags of all calls apply when the follow-up is merged into the run before it.
    local _, earlier = follow_up_of(before_it)
    add_follow_up_to_processing_run(before_it, holder, earlier .. string.gsub(flags, "[" .. earlier .. "-]", ""))
  end
  if token ~= "" then redis.call("SET", K.once .. ":" .. token, holder, "PX", C.ONCE_KEPT_MS) end
  return holder, "updated", freed
end
