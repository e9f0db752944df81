-- A workflow enters another state. Running and undoing ones hold a place among those of their name, where it is limited;
-- one that leaves its place lets the next in. Those that have ended for good are kept for a day.
-- keys: flow, flow_due, held, places, queued
-- @include emit
-- @include text_of

local HOLDS_PLACE = { running = true, undoing = true }
local HAS_ENDED = { completed = true, undone = true, cancelled = true }

local function touch(id, at)
  redis.call("HINCRBY", flow .. ":" .. id, "version", 1)
  redis.call("ZADD", flow_due, text_of(at), id)
end

-- Places of workflows that are no more are free, whatever became of them. A hundred at a time.
local function sweep_places(name)
  for _, id in ipairs(redis.call("ZRANGE", places .. ":" .. name, 0, 99)) do
    local state = redis.call("HGET", flow .. ":" .. id, "state")
    if not state or HAS_ENDED[state] then redis.call("ZREM", places .. ":" .. name, id) end
  end
end

local function leave_place(id, name, now)
  redis.call("ZREM", queued .. ":" .. name, id)
  if redis.call("ZREM", places .. ":" .. name, id) == 0 then return end
  -- Those that are being undone may be more than there are places, so that not each of them lets one in.
  for _ = 1, 100 do
    local following = redis.call("ZRANGE", queued .. ":" .. name, 0, 0)[1]
    if not following then return end
    local state, limit = unpack(redis.call("HMGET", flow .. ":" .. following, "state", "limit"))
    if state == "waiting" then
      if redis.call("ZCARD", places .. ":" .. name) >= tonumber(limit) then return end
      redis.call("ZADD", places .. ":" .. name, text_of(now), following)
      redis.call("HSET", flow .. ":" .. following, "state", "running")
      touch(following, now)
      emit("workflow", { following })
    end
    redis.call("ZREM", queued .. ":" .. name, following)
  end
end

-- The state it is in then: "waiting" where there is no place for it.
local function flow_state(id, state, now)
  local key = flow .. ":" .. id
  local name, limit = unpack(redis.call("HMGET", key, "name", "limit"))
  limit = tonumber(limit)
  if HOLDS_PLACE[state] and limit > 0 and not redis.call("ZSCORE", places .. ":" .. name, id) then
    if redis.call("ZCARD", places .. ":" .. name) >= limit then sweep_places(name) end
    -- What is to be undone is not kept waiting.
    if state == "running" and redis.call("ZCARD", places .. ":" .. name) >= limit then
      redis.call("ZADD", queued .. ":" .. name, "NX", text_of(now), id)
      state = "waiting"
    else
      redis.call("ZREM", queued .. ":" .. name, id)
      redis.call("ZADD", places .. ":" .. name, text_of(now), id)
    end
  elseif not HOLDS_PLACE[state] and not (state == "failed" and redis.call("HGET", key, "busy") == "1") then
    leave_place(id, name, now)
  end
  redis.call("HSET", key, "state", state)
  if state == "failed" or state == "parked" then
    redis.call("ZADD", held, text_of(now), id)
  else
    redis.call("ZREM", held, id)
  end
  if HAS_ENDED[state] then
    redis.call("HSET", key, "ended_at", text_of(now))
    redis.call("PEXPIRE", key, 86400000)
    -- Then it is found to be gone, and no longer listed.
    redis.call("ZADD", flow_due, text_of(now + 86401000), id)
  end
  if HAS_ENDED[state] or state == "failed" or state == "parked" then
    for client in string.gmatch(redis.call("HGET", key, "waiters") or "", "%S+") do
      redis.call("PUBLISH", inbox .. client, "ended ~ " .. id)
    end
    redis.call("HDEL", key, "waiters")
  end
  return state
end
