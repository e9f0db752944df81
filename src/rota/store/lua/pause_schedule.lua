-- pause_schedule: no change of state
--
-- Stops a schedule's ticks, or lets them go on from now: what would have come meanwhile was not wanted, and is not
-- missed. Harmless when sent again.
--
-- KEYS ticks  zset  schedule -> its next tick, ms
-- ARGV[1] queue
-- ARGV[2] inbox      prefix of the channels
-- ARGV[3] name
-- ARGV[4] wanted     "paused" or "open"
-- ARGV[5] revision   of the schedule that the caller read, for its next tick
-- ARGV[6] following  tick to wait for once it is open, ms; "" when there is none
--
-- Returns "paused" | "open" | "missing" | "changed"

-- @include emit
-- @include now_ms
-- @include schedule
-- @include tell_tickers

local state, rule, settings, body = read_schedule(name)
if not state then return "missing" end
if state.is_paused == (wanted == "paused") then return wanted end
if state.revision ~= tonumber(revision) then return "changed" end

state.is_paused, state.revision = wanted == "paused", state.revision + 1
write_schedule(name, state, rule, settings, body)
if wanted == "paused" then
  redis.call("ZREM", ticks, name)
elseif following ~= "" then
  redis.call("ZADD", ticks, following, name)
  tell_tickers(now_ms())
end
emit("pause_schedule", { name })
return wanted
