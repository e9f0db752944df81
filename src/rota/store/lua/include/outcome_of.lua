-- What is remembered of a caller's latest call ("17:outcome"), and what that says of one that is numbered so: its outcome if
-- it was that one, nil if it is new. A number below the latest is a copy that was long on its way, when its caller had
-- the answer to another copy: nobody waits for it, and its outcome is "".
local function outcome_of(remembered, number)
  local latest, outcome = string.match(remembered, "^(%d+):(.*)$")
  if not latest or tonumber(number) > tonumber(latest) then return nil end
  return number == latest and outcome or ""
end
