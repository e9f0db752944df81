-- Adds a run as the follow-up of another one of the same id, which is processing.

local function add_follow_up_to_processing_run(holder, run, flags)
  redis.call("HSET", K.follow_ups, holder, run .. " " .. flags)
  redis.call("HSET", K.follows, run, holder)
end
