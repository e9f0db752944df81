-- change_scaling_settings: no change of state
--
-- Replaces the settings that operators have changed at run time, if they are still those that the caller has read,
-- and notifies the planner. Sent again with the same token, it changes nothing: by then another caller may have
-- restored those settings.
--
-- KEYS scaling_settings  string  settings changed at run time, JSON
-- KEYS planner           hash    the planner lease: fence, holder, until; the latest decision recorded
-- ARGV[1] inbox     prefix of the channels
-- ARGV[2] expected  the settings that the caller has read; "" for none
-- ARGV[3] wanted    the new settings; "" for none
--
-- Returns "changed" | "conflict" (another caller has changed them)

-- @include emit_event
-- @include run_once_per_token

return run_once_per_token(function()
  local current = redis.call("GET", K.scaling_settings) or ""
  if current == wanted then return "changed" end
  if current ~= expected then return "conflict" end
  if wanted == "" then
    redis.call("DEL", K.scaling_settings)
  else
    redis.call("SET", K.scaling_settings, wanted)
  end
  emit_event("scaling", { "settings" })
  local holder = redis.call("HGET", K.planner, "holder")
  if holder then redis.call("PUBLISH", inbox .. holder, "settings") end
  return "changed"
end)
