-- Claims that their worker abandoned, because the reply was overdue: a heartbeat has stated that the worker will not
-- start any of their runs, even if the reply comes. Nothing less proves that a claim was not received: a heartbeat
-- that does not name a run may have been sent before the reply arrived.
-- @include queue_key_prefix

-- A heartbeat that arrives late names an earlier claim than the latest one.
local function record_abandoned_claim(worker, number)
  local key = queue_key_prefix .. "last_reply:" .. worker .. ":given_up"
  if tonumber(number) >= (tonumber(redis.call("GET", key) or "") or 0) then
    redis.call("SET", key, number, "PX", C.REPLY_KEPT_MS)
  end
end

-- Returns true if the latest claim of the run's owner is the one that the run record names, and was abandoned.
local function is_claim_abandoned(r)
  local replies = queue_key_prefix .. "last_reply:" .. r.worker
  local number = redis.call("GET", replies .. ":given_up")
  local fence = string.match(r.claim, "^%d+")
  if not number or not fence then return false end
  return string.find(redis.call("GET", replies .. ":claim") or "", number .. ":" .. fence .. " ", 1, true) == 1
end
