-- Keeps the reply to the latest numbered call of a caller, so that the same call sent again gets it without being
-- carried out. A caller numbers its calls of one kind and has one of them under way, so the latest of each kind is
-- all that can be sent again. It is kept for the caller's retry window.

-- Returns the reply if this call was carried out before, else nil. A number below the latest is a delayed copy, whose
-- caller has had the reply to another copy: its reply is "".
local function recall_reply(kind, number)
  local latest, outcome = string.match(redis.call("GET", K.last_reply .. ":" .. kind) or "", "^(%d+):(.*)$")
  if not latest or tonumber(number) > tonumber(latest) then return nil end
  return number == latest and outcome or ""
end

local function remember_reply(kind, number, outcome)
  redis.call("SET", K.last_reply .. ":" .. kind, number .. ":" .. outcome, "PX", C.REPLY_KEPT_MS)
end
