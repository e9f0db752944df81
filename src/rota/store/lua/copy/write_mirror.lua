-- write_mirror: no change of state
--
-- Writes lines of a queue into a mirror, removes others, and stores how far the mirror has followed the events of the
-- queue. A mirror that has been replaced by another one writes nothing, nor does one whose source has lost data: the
-- number of its newest run never falls. Harmless when sent again.
--
-- KEYS mirror    hash  a mirror of the queue: fence of its writer, position, newest run
-- KEYS mirrored  hash  run, schedule, workflow or queue -> its line of an export
-- ARGV[1] fence
-- ARGV[2] newest    the number of the source's newest run, read after the lines; "" for workflows
-- ARGV[3] position  in the event stream, or "" to leave it
-- ARGV[4] removed   how many fields to remove
-- ARGV[5…] those fields, then fields and lines
--
-- Returns "written" | "replaced" | "lost" and the newest run that the mirror knows

-- @include format_integer

local latest = tonumber(redis.call("HGET", K.mirror, "fence") or 0) or 0
if tonumber(fence) < latest then return "replaced" end
local mirrored = tonumber(redis.call("HGET", K.mirror, "run") or 0) or 0
if newest ~= "" and tonumber(newest) < mirrored then return "lost " .. format_integer(mirrored) end
redis.call("HSET", K.mirror, "fence", fence)
if newest ~= "" then redis.call("HSET", K.mirror, "run", newest) end
local first = 5 + tonumber(removed)
for at = 5, first - 1 do redis.call("HDEL", K.mirrored, ARGV[at]) end
for at = first, #ARGV, 2 do redis.call("HSET", K.mirrored, ARGV[at], ARGV[at + 1]) end
if position ~= "" then redis.call("HSET", K.mirror, "position", position) end
return "written"
