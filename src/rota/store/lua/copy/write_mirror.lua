-- write_mirror: no change of state
--
-- Writes lines of a queue into a mirror, removes others, and stores how far the mirror has followed the events of the
-- queue. A mirror that has been replaced by another one writes nothing. Harmless when sent again.
--
-- KEYS mirror    hash  a mirror of the queue: fence of its writer, position
-- KEYS mirrored  hash  run, schedule, workflow or queue -> its line of an export
-- ARGV[1] fence
-- ARGV[2] position  in the event stream, or "" to leave it
-- ARGV[3] removed   how many fields to remove
-- ARGV[4…] those fields, then fields and lines
--
-- Returns "written" | "replaced"

local latest = tonumber(redis.call("HGET", K.mirror, "fence") or 0) or 0
if tonumber(fence) < latest then return "replaced" end
redis.call("HSET", K.mirror, "fence", fence)
local first = 4 + tonumber(removed)
for at = 4, first - 1 do redis.call("HDEL", K.mirrored, ARGV[at]) end
for at = first, #ARGV, 2 do redis.call("HSET", K.mirrored, ARGV[at], ARGV[at + 1]) end
if position ~= "" then redis.call("HSET", K.mirror, "position", position) end
return "written"
