-- Changes the state of a workflow. Where its name has a limit, running and undoing ones are active; one that stops
-- being active lets the next waiting one run. Ended ones are kept for a day.
-- @include emit_event
-- @include format_integer
-- @include now_ms

local IS_ACTIVE = { running = true, undoing = true }
local HAS_ENDED = { completed = true, undone = true, cancelled = true }

-- Adds to a number in the record of a workflow. A damaged one restarts: an error would hold up the outcomes of all
-- other workflows. A version restarts above all earlier ones. Returns the sum, and whether it has restarted.
local function add_to_workflow_field(key, field, amount)
  local sum = redis.pcall("HINCRBY", key, field, amount)
  if type(sum) == "number" then return sum, false end
  sum = field == "version" and now_ms() or amount
  redis.call("HSET", key, field, format_integer(sum))
  return sum, true
end

local function mark_due(id, at)
  add_to_workflow_field(K.workflow .. ":" .. id, "version", 1)
  redis.call("ZADD", K.workflow_due, format_integer(at), id)
end

-- Removes ended and expired workflows from the active ones of a name. A hundred at a time.
local function remove_ended_workflows(name)
  for _, id in ipairs(redis.call("ZRANGE", K.active_workflows .. ":" .. name, 0, 99)) do
    local state = redis.call("HGET", K.workflow .. ":" .. id, "state")
    if not state or HAS_ENDED[state] then redis.call("ZREM", K.active_workflows .. ":" .. name, id) end
  end
end

local function leave_active(id, name, now)
  redis.call("ZREM", K.waiting_workflows .. ":" .. name, id)
  if redis.call("ZREM", K.active_workflows .. ":" .. name, id) == 0 then return end
  -- Undoing ones may exceed the limit, so not each that stops lets another one run.
  for _ = 1, 100 do
    local following = redis.call("ZRANGE", K.waiting_workflows .. ":" .. name, 0, 0)[1]
    if not following then return end
    local state, limit = unpack(redis.call("HMGET", K.workflow .. ":" .. following, "state", "limit"))
    if state == "waiting" then
      if redis.call("ZCARD", K.active_workflows .. ":" .. name) >= (tonumber(limit) or math.huge) then return end
      redis.call("ZADD", K.active_workflows .. ":" .. name, format_integer(now), following)
      redis.call("HSET", K.workflow .. ":" .. following, "state", "running")
      mark_due(following, now)
      emit_event("workflow", { following })
    end
    redis.call("ZREM", K.waiting_workflows .. ":" .. name, following)
  end
end

-- Returns the new state: "waiting" if the limit is reached.
local function set_workflow_state(id, state, now)
  local key = K.workflow .. ":" .. id
  local name, limit = unpack(redis.call("HMGET", key, "name", "limit"))
  limit = tonumber(limit) or 0
  if IS_ACTIVE[state] and limit > 0 and not redis.call("ZSCORE", K.active_workflows .. ":" .. name, id) then
    if redis.call("ZCARD", K.active_workflows .. ":" .. name) >= limit then remove_ended_workflows(name) end
    -- An undo does not wait for the limit.
    if state == "running" and redis.call("ZCARD", K.active_workflows .. ":" .. name) >= limit then
      redis.call("ZADD", K.waiting_workflows .. ":" .. name, "NX", format_integer(now), id)
      state = "waiting"
    else
      redis.call("ZREM", K.waiting_workflows .. ":" .. name, id)
      redis.call("ZADD", K.active_workflows .. ":" .. name, format_integer(now), id)
    end
  elseif not IS_ACTIVE[state] and not (state == "failed" and redis.call("HGET", key, "busy") == "1") then
    leave_active(id, name, now)
  end
  redis.call("HSET", key, "state", state)
  if state == "failed" or state == "parked" then
    redis.call("ZADD", K.stuck_workflows, format_integer(now), id)
  else
    redis.call("ZREM", K.stuck_workflows, id)
  end
  if HAS_ENDED[state] then
    redis.call("HSET", key, "ended_at", format_integer(now))
    redis.call("PEXPIRE", key, C.WORKFLOW_KEPT_MS)
    redis.call("PEXPIRE", K.workflow_results .. ":" .. id, C.WORKFLOW_KEPT_MS)
    -- Due once it has expired: `take_due_workflows` then removes it from the list.
    redis.call("ZADD", K.workflow_due, format_integer(now + C.WORKFLOW_KEPT_MS + 1000), id)
  end
  if HAS_ENDED[state] or state == "failed" or state == "parked" then
    for client in string.gmatch(redis.call("HGET", key, "waiters") or "", "%S+") do
      redis.call("PUBLISH", inbox .. client, "ended ~ " .. id)
    end
    redis.call("HDEL", key, "waiters")
  end
  return state
end
