-- pause_or_resume_schedule: no change of state
--
-- Pauses a schedule, or resumes it from now: ticks during the pause do not count as missed. Sent again with the
-- same token, it changes nothing: by then the schedule may have been removed and created again.
--
-- KEYS schedule_due  zset  schedule that is not paused -> its next tick, ms
-- ARGV[1] queue
-- ARGV[2] inbox      prefix of the channels
-- ARGV[3] name
-- ARGV[4] wanted     "paused" or "open"
-- ARGV[5] revision   of the schedule that the caller read
-- ARGV[6] following  next tick once it is open, ms; "" for none
--
-- Returns "paused" | "open" | "missing" | "changed"

-- @include emit_event
-- @include notify_workers_of_changed_schedule
-- @include now_ms
-- @include read_and_write_schedule_record
-- @include run_once_per_token

return run_once_per_token(function()
  local state, rule, settings, body = read_schedule(name)
  if not state then return "missing" end
  if state.is_paused == (wanted == "paused") then return wanted end
  if state.revision ~= tonumber(revision) then return "changed" end

  state.is_paused, state.revision = wanted == "paused", state.revision + 1
  write_schedule(name, state, rule, settings, body)
  if wanted == "paused" then
    redis.call("ZREM", K.schedule_due, name)
  elseif following ~= "" then
    redis.call("ZADD", K.schedule_due, following, name)
    notify_workers_of_changed_schedule(now_ms())
  end
  emit_event("pause_schedule", { name })
  return wanted
end)
