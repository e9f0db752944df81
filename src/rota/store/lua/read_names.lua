-- read_names: no change of state
--
-- What some runs are called, and which task each is of. What a job carries may be long, and is left out.
--
-- flags: no-writes
-- KEYS jobs  hash  run -> record
-- ARGV[1…] runs
--
-- Returns for each its record without the arguments, or "" if there is no such run

local reply = {}
for i, record in ipairs(redis.call("HMGET", jobs, unpack(ARGV))) do
  reply[i] = record and string.match(record, "^[^\n]*\n[^\n]*\n[^\n]*\n") or ""
end
return reply
