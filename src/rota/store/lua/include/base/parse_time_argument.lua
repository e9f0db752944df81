-- Parses a time argument, in ms: "" is now, "+250" is 250 ms from now, anything else is ms since 1970.
local function parse_time_argument(text, now)
  if text == "" then return now end
  local after = string.match(text, "^%+(%d+)$")
  if after then return now + after end
  return tonumber(text)
end
