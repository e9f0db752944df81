-- import_schedule: no change of state
--
-- Restores a schedule of an export with its next tick, unless there is one of its name. Harmless when sent again.
--
-- KEYS schedules     hash  schedule -> state, rule, settings, its job
-- KEYS schedule_due  zset  schedule that is not paused -> its next tick, ms
-- ARGV[1] queue
-- ARGV[2] inbox   prefix of the channels
-- ARGV[3] name
-- ARGV[4] tick    its next tick, ms, or "" for none
-- ARGV[5] record
--
-- Returns "imported" | "exists"

-- @include emit_event
-- @include notify_workers_of_changed_schedule
-- @include now_ms

if redis.call("HSETNX", K.schedules, name, record) == 0 then return "exists" end
if tick ~= "" then
  redis.call("ZADD", K.schedule_due, tick, name)
  notify_workers_of_changed_schedule(now_ms())
end
emit_event("put_schedule", { name })
return "imported"
