-- read_counters: no change of state
--
-- Reads the counters of a queue as one snapshot: the totals, and what each of some minutes or hours added.
--
-- flags: no-writes
-- KEYS task_numbers           hash    task -> its number; the last minute counted
-- KEYS counters               string  totals, 64 numbers for each task
-- KEYS minute_start_counters  string  the counters as the latest minute began
-- KEYS hour_start_counters    string  the counters as the latest hour began
-- KEYS minute_counters        prefix  `minute_counters:…`: what one minute added to the counters
-- KEYS hour_counters          prefix  `hour_counters:…`: what one hour added to the counters
-- ARGV[1] unit         "minute" or "hour"
-- ARGV[2] first        number of the first
-- ARGV[3] last         number of the last; nothing is read if it is before the first
--
-- Returns the server's time, fields and values of `task_numbers`, the totals, the totals as the latest unit began,
-- then what each added, or ""

-- @include format_integer
-- @include now_ms

local pages = {}
local prefix = unit == "hour" and K.hour_counters or K.minute_counters
for number = first, last do pages[#pages + 1] = prefix .. ":" .. format_integer(number) end
local before = redis.call("GET", unit == "hour" and K.hour_start_counters or K.minute_start_counters) or ""
local totals = redis.call("GET", K.counters) or ""
local reply = { format_integer(now_ms()), redis.call("HGETALL", K.task_numbers), totals, before }
for _, added in ipairs(#pages > 0 and redis.call("MGET", unpack(pages)) or {}) do reply[#reply + 1] = added or "" end
return reply
