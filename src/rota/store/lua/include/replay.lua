-- A caller numbers its calls of one kind and has one of them under way, so the outcome of the latest is all that a
-- call sent again can ask for. It is kept for the caller's retry window.
-- keys: calls
-- @include outcome_of

local REPLAY_WINDOW_MS = 600000

-- The outcome of this call if it was carried out before, else nil.
local function recall(kind, number)
  return outcome_of(redis.call("GET", calls .. ":" .. kind) or "", number)
end

local function remember(kind, number, outcome)
  redis.call("SET", calls .. ":" .. kind, number .. ":" .. outcome, "PX", REPLAY_WINDOW_MS)
end
