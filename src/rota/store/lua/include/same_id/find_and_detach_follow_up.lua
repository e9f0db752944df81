-- Finds the follow-up of a run, and detaches it. Enqueueing an id whose run is processing makes a follow-up, which is
-- blocked until that run has ended. `follow_ups` maps such a run to "follow-up flags", `follows` maps back.

local function follow_up_of(run)
  return string.match(redis.call("HGET", K.follow_ups, run) or "", "^(%S+) (%S*)$")
end

-- Detaches a follow-up from the run before it. Its id refers to that run again, if both have the same id.
local function detach_follow_up(run)
  local holder = redis.call("HGET", K.follows, run)
  if not holder then return end
  redis.call("HDEL", K.follows, run)
  redis.call("HDEL", K.follow_ups, holder)
  local id = redis.call("HGET", K.named, run)
  if not id or redis.call("HGET", K.ids, id) ~= run then return end
  -- An id that was not chosen begins with its run, and needs no entry.
  if redis.call("HGET", K.named, holder) == id then
    redis.call("HSET", K.ids, id, holder)
  else
    redis.call("HDEL", K.ids, id)
  end
end
