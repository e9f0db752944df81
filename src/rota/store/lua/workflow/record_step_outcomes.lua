-- record_step_outcomes: no change of state
--
-- Records outcomes of a workflow's steps, list items and compensations in its record, and marks the workflow due
-- where a decision is needed. Outcomes are numbered: a repeated or late one changes nothing.
--
-- flags: allow-oom
-- KEYS workflow          prefix  `workflow:…`: one workflow: graph, state, steps
-- KEYS workflow_results  prefix  `workflow_results:…`: results of one workflow's steps and items
-- ARGV[1] inbox   prefix of the channels
-- ARGV[2…] six for each: workflow, step ("s3"), item of a list ("m3.7") or compensation ("u3"), number, outcome,
--          attempts, result or ""
--
-- Returns "due" if one of them needs a decision, else "done"

-- @include emit_event
-- @include now_ms
-- @include set_workflow_state

local now, answer, advanced, is_advanced = now_ms(), "done", {}, {}
local GOOD, OPEN = "completed", "waiting"

-- Keeps the result of a step ("s3") or an item ("m3.7"). The results of one list become one value: beyond the limit
-- of a payload only their size grows.
local function keep_result(id, part, result, max_payload)
  local key, field = K.workflow_results .. ":" .. id, string.sub(part, 2)
  local list = string.match(field, "^(%d+)%.")
  if list then
    local added = #result - redis.call("HSTRLEN", key, field)
    if add_to_workflow_field(key, "size:" .. list, added) > tonumber(max_payload) then return end
  end
  redis.call("HSET", key, field, result)
end

for at = 2, #ARGV, 6 do
  local id, part, number, outcome, attempts, result = unpack(ARGV, at, at + 5)
  local key = K.workflow .. ":" .. id
  local state, before, max_payload = unpack(redis.call("HMGET", key, "state", part, "max_payload"))
  local latest, was = string.match(before or "-1 waiting", "^(%-?%d+) (%a+)")
  if not latest then latest, was = "-1", OPEN end -- it is damaged
  if state and not HAS_ENDED[state] and tonumber(number) > tonumber(latest) then
    if not is_advanced[id] then advanced[#advanced + 1], is_advanced[id] = id, true end
    redis.call("HSET", key, part, number .. " " .. outcome .. " " .. attempts)
    if result ~= "" then keep_result(id, part, result, max_payload or C.MAX_PAYLOAD) end
    local kind, number_of_step = string.match(part, "^(%a)(%d+)")
    local was_bad, is_bad = was ~= GOOD and was ~= OPEN, outcome ~= GOOD and outcome ~= OPEN
    if kind == "s" then
      local has_restarted = false
      if outcome == GOOD and was ~= GOOD then has_restarted = select(2, add_to_workflow_field(key, "done", 1)) end
      if was_bad ~= is_bad then add_to_workflow_field(key, "bad", is_bad and 1 or -1) end
      local done, total = unpack(redis.call("HMGET", key, "done", "total"))
      if done == total and (state == "running" or state == "failed") then
        add_to_workflow_field(key, "version", 1)
        set_workflow_state(id, "completed", now)
      elseif has_restarted or is_bad or state ~= "running"
        or redis.call("HEXISTS", key, "w" .. number_of_step) == 1 then
        -- The step failed, or the workflow is being undone, or a list has become known, or the count was damaged.
        mark_due(id, now)
        answer = "due"
      end
    elseif kind == "m" and outcome == GOOD and was ~= GOOD then
      -- Only the last of many items needs a decision.
      local count, has_restarted = add_to_workflow_field(key, "c" .. number_of_step, 1)
      if has_restarted or count == tonumber(redis.call("HGET", key, "n" .. number_of_step)) or state ~= "running" then
        mark_due(id, now)
        answer = "due"
      end
    else
      mark_due(id, now)
      answer = "due"
    end
  end
end
emit_event("workflow", advanced)
return answer
