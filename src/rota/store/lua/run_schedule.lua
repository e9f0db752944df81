-- run_schedule: (none) -> blocked | pending
--
-- Makes a job of a schedule now, whatever its next tick, and whether it is paused or not. Sent again with the same
-- token, it makes nothing and says what the first one did.
--
-- ARGV[1] queue
-- ARGV[2] inbox     prefix of the channels
-- ARGV[3] name
-- ARGV[4] revision  of the schedule that the caller read
-- ARGV[5] id        of the job
-- ARGV[6] priority
-- ARGV[7] expiry    moment, or ""
--
-- Returns the run | "missing" | "changed" | "in_use"

-- @include emit
-- @include now_ms
-- @include once
-- @include schedule
-- @include spawn
-- @include tally
-- @include unfinished
-- @include wake

return once(function()
  local state, rule, settings, body = read_schedule(name)
  if not state then return "missing" end
  if state.revision ~= tonumber(revision) then return "changed" end
  if unfinished(id) then return "in_use" end
  local now = now_ms()
  local run, where = spawn(id, tonumber(priority), expiry, body, now)
  write_tally(now)
  state.manual_id = id
  write_schedule(name, state, rule, settings, body)
  emit("enqueue", { run })
  emit("run_schedule", { name })
  if where == "pending" then wake(1) end
  return run
end)
