-- put_schedule: no change of state
--
-- Creates a schedule, or changes one that has no higher version. While its rule stays the same it keeps its next
-- tick; a paused one stays paused. Sent again with the same token, it changes nothing: by then the schedule may have
-- been changed or removed.
--
-- KEYS schedule_due  zset  schedule that is not paused -> its next tick, ms
-- ARGV[1] queue
-- ARGV[2] inbox      prefix of the channels
-- ARGV[3] name
-- ARGV[4] version
-- ARGV[5] following  next tick if the rule is new, ms; "" for none
-- ARGV[6] rule       JSON
-- ARGV[7] settings   JSON
-- ARGV[8] body       record of its jobs without the head
--
-- Returns "made" | "changed" | "same", or "older" and the version that is stored, separated by a space

-- @include emit_event
-- @include format_integer
-- @include notify_workers_of_changed_schedule
-- @include now_ms
-- @include read_and_write_schedule_record
-- @include run_once_per_token

return run_once_per_token(function()
  local state, old_rule, old_settings, old_body = read_schedule(name)
  local outcome = state and "changed" or "made"
  if state then
    if state.version > tonumber(version) then return "older " .. format_integer(state.version) end
    local is_same = old_rule == rule and old_settings == settings and old_body == body
    if is_same and state.version == tonumber(version) then return "same" end
  else
    state = { revision = 0, is_paused = false, last_id = "", manual_id = "", fired = 0, dropped = 0, skipped = 0 }
  end

  state.version, state.revision = tonumber(version), state.revision + 1
  write_schedule(name, state, rule, settings, body)
  if rule ~= old_rule and not state.is_paused then
    if following == "" then
      redis.call("ZREM", K.schedule_due, name)
    else
      redis.call("ZADD", K.schedule_due, following, name)
    end
    notify_workers_of_changed_schedule(now_ms())
  end
  emit_event("put_schedule", { name })
  return outcome
end)
