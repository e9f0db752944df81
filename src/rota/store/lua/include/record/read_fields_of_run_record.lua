-- Reads single fields of a run record. A run without one waits for its first claim.
local function state_in_record(line)
  return line and string.match(line, "^%S+") or "waiting"
end

local function claimed_at_in_record(line)
  return string.match(line or "", "^%S+ %S+ %S+ (%d+)")
end

local function attempt_in_record(line)
  return string.match(line or "", "^%S+ %S+ %S+ %S+ %S+ (%d+)")
end
