-- read_tally: no change of state
--
-- What has been counted in a queue, at one moment: since ever, and what each of some minutes or hours has added.
--
-- flags: no-writes
-- KEYS slots         hash    task -> its number; the minute in which was last counted
-- KEYS tally         string  what has happened since ever
-- KEYS minute_tally  string  the tally as the latest minute began
-- KEYS hour_tally    string  the tally as the latest hour began
-- KEYS minute        prefix  of one string per minute, `minute:<number>`
-- KEYS hour          prefix  of one string per hour, `hour:<number>`
-- ARGV[1] unit         "minute" or "hour"
-- ARGV[2] first        number of the first
-- ARGV[3] last         number of the last; none at all where it is before the first
--
-- Returns the server's time, fields and values of `slots`, the tally, how it was as the latest of that unit began, then
-- what each added, or ""

-- @include now_ms
-- @include text_of

local pages = {}
for number = first, last do pages[#pages + 1] = (unit == "hour" and hour or minute) .. ":" .. text_of(number) end
local before = redis.call("GET", unit == "hour" and hour_tally or minute_tally) or ""
local reply = { text_of(now_ms()), redis.call("HGETALL", slots), redis.call("GET", tally) or "", before }
for _, added in ipairs(#pages > 0 and redis.call("MGET", unpack(pages)) or {}) do reply[#reply + 1] = added or "" end
return reply
