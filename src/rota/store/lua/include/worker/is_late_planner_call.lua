-- True when the planner with this fence has made a later call of that kind, or this one: a planner numbers its calls.
-- Else the number is stored.

local function is_late_planner_call(kind, fence, number)
  local of, latest = string.match(redis.call("HGET", K.planner, kind) or "", "^(.*):(%d+)$")
  if of == fence and tonumber(number) <= tonumber(latest) then return true end
  redis.call("HSET", K.planner, kind, fence .. ":" .. number)
  return false
end
