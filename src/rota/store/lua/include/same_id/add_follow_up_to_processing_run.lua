-- Adds a run as the follow-up of another one of the same id, which is processing. The flags are those that apply when
-- it is merged; its greatest wait is not among them.

local function add_follow_up_to_processing_run(holder, run, flags)
  flags = string.gsub(flags, C.MAX_WAIT_FLAG .. "%d+", "")
  redis.call("HSET", K.follow_ups, holder, run .. " " .. flags)
  redis.call("HSET", K.follows, run, holder)
end
