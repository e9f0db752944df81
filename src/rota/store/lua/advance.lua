-- advance: no change of state
--
-- News of a workflow's steps and compensations: counted, and kept for whoever decides what follows. News is numbered:
-- what comes twice or late changes nothing.
--
-- flags: allow-oom
-- KEYS flow  prefix  of one hash per workflow, `flow:<id>`
-- ARGV[1] inbox   prefix of the channels
-- ARGV[2…] six for each: workflow, step ("s3"), item of a list ("m3.7") or compensation ("u3"), number, outcome,
--          attempts, result or ""
--
-- Returns "due" if somebody must see to one of them, else "done"

-- @include emit
-- @include flow_state
-- @include now_ms

local now, answer, advanced, is_advanced = now_ms(), "done", {}, {}
local GOOD, OPEN = "completed", "waiting"

for at = 2, #ARGV, 6 do
  local id, part, number, outcome, attempts, result = unpack(ARGV, at, at + 5)
  local key = flow .. ":" .. id
  local state, before = unpack(redis.call("HMGET", key, "state", part))
  local latest, was = string.match(before or "-1 waiting", "^(%-?%d+) (%a+)")
  if state and not HAS_ENDED[state] and tonumber(number) > tonumber(latest) then
    if not is_advanced[id] then advanced[#advanced + 1], is_advanced[id] = id, true end
    redis.call("HSET", key, part, number .. " " .. outcome .. " " .. attempts)
    if result ~= "" then redis.call("HSET", key, "r" .. string.sub(part, 2), result) end
    local kind, place = string.match(part, "^(%a)(%d+)")
    local was_bad, is_bad = was ~= GOOD and was ~= OPEN, outcome ~= GOOD and outcome ~= OPEN
    if kind == "s" then
      if outcome == GOOD and was ~= GOOD then redis.call("HINCRBY", key, "done", 1) end
      if was_bad ~= is_bad then redis.call("HINCRBY", key, "bad", is_bad and 1 or -1) end
      local done, total = unpack(redis.call("HMGET", key, "done", "total"))
      if done == total and (state == "running" or state == "failed") then
        redis.call("HINCRBY", key, "version", 1)
        flow_state(id, "completed", now)
      elseif is_bad or state ~= "running" or redis.call("HEXISTS", key, "w" .. place) == 1 then
        -- It went wrong, or is being undone, or a list has become known.
        touch(id, now)
        answer = "due"
      end
    elseif kind == "m" and outcome == GOOD and was ~= GOOD then
      -- Only the last of many items is worth a look.
      local count = redis.call("HINCRBY", key, "c" .. place, 1)
      if count == tonumber(redis.call("HGET", key, "n" .. place)) or state ~= "running" then
        touch(id, now)
        answer = "due"
      end
    else
      touch(id, now)
      answer = "due"
    end
  end
end
emit("workflow", advanced)
return answer
