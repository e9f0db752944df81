-- A caller numbers its calls of one kind and has one of them under way, so the outcome of the latest is all that a
-- call sent again can ask for. It is kept for the caller's retry window.
-- keys: calls

local REPLAY_WINDOW_MS = 600000

-- The outcome of this call if it was carried out before, else nil. A number below the latest is a copy that was long
-- on its way, when its caller had the answer to another copy: nobody waits for it, and its outcome is "".
local function recall(kind, number)
  local latest, outcome = string.match(redis.call("GET", calls .. ":" .. kind) or "", "^(%d+):(.*)$")
  if not latest or tonumber(number) > tonumber(latest) then return nil end
  return number == latest and outcome or ""
end

local function remember(kind, number, outcome)
  redis.call("SET", calls .. ":" .. kind, number .. ":" .. outcome, "PX", REPLAY_WINDOW_MS)
end
