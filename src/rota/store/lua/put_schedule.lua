-- put_schedule: no change of state
--
-- Makes a schedule, or changes one that has no higher version. While its rule stays the same, it goes on waiting for the
-- tick that it was waiting for; what is paused stays so. Sent again, it finds all as it should be.
--
-- KEYS ticks  zset  schedule -> its next tick, ms
-- ARGV[1] queue
-- ARGV[2] inbox      prefix of the channels
-- ARGV[3] name
-- ARGV[4] version
-- ARGV[5] following  its next tick if the rule is new, ms; "" when there is none
-- ARGV[6] rule       JSON
-- ARGV[7] settings   JSON
-- ARGV[8] body       record of its jobs without the head
--
-- Returns "made" | "changed" | "same", or "older" and the version that is stored

-- @include emit
-- @include now_ms
-- @include schedule
-- @include tell_tickers
-- @include text_of

local state, old_rule, old_settings, old_body = read_schedule(name)
local outcome = state and "changed" or "made"
if state then
  if state.version > tonumber(version) then return { "older", text_of(state.version) } end
  local is_same = old_rule == rule and old_settings == settings and old_body == body
  if is_same and state.version == tonumber(version) then return { "same" } end
else
  state = { revision = 0, is_paused = false, last_id = "", manual_id = "", fired = 0, dropped = 0, skipped = 0 }
end

state.version, state.revision = tonumber(version), state.revision + 1
write_schedule(name, state, rule, settings, body)
if rule ~= old_rule and not state.is_paused then
  if following == "" then redis.call("ZREM", ticks, name) else redis.call("ZADD", ticks, following, name) end
  tell_tickers(now_ms())
end
emit("put_schedule", { name })
return { outcome }
