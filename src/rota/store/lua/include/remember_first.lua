-- What `recall` and `remember` do in one command, for a script that knows its outcome before it writes; see `replay`.
-- keys: calls
-- @include outcome_of

-- Notes the outcome of a call. If it was carried out before, says what came of it then, and changes nothing.
local function remember_first(kind, number, outcome)
  local key, window_ms = calls .. ":" .. kind, 600000
  local before = redis.call("SET", key, number .. ":" .. outcome, "PX", window_ms, "GET")
  local known = before and outcome_of(before, number)
  if known then redis.call("SET", key, before, "PX", window_ms) end
  return known or nil
end
