-- read_locks: no change of state
--
-- Locks of a queue that a run has or is about to have, some at a time: whose each is, and who waits for it.
--
-- flags: no-writes
-- KEYS runs   hash    run -> what happened to it
-- KEYS locks  hash    lock -> its occupant
-- KEYS lane   prefix  runs that are due and wait for one lock -> place
-- ARGV[1] from   where the last call ended, "0" at first
-- ARGV[2] limit  how many, about
-- ARGV[3] shown  how many waiters of each are named
-- ARGV[4] only   the one lock that is asked for, or ""
--
-- Returns where it ended, "0" at the end; then for each lock its name, its occupant, since when that one runs or "",
-- how many wait, and the first of those with blanks between

-- @include describe
-- @include text_of

local found, reached = {}, "0"
if only ~= "" then
  local occupant = redis.call("HGET", locks, only)
  if occupant then found = { only, occupant } end
else
  local page = redis.call("HSCAN", locks, from, "COUNT", limit)
  reached, found = page[1], page[2]
end
local reply = { reached }
for i = 1, #found, 2 do
  local lock, occupant = found[i], found[i + 1]
  local behind, waiters = lane .. ":" .. lock, {}
  for _, run in ipairs(redis.call("ZRANGE", behind, 0, shown - 1)) do waiters[#waiters + 1] = id_of(run) .. "@" .. run end
  reply[#reply + 1] = lock
  reply[#reply + 1] = id_of(occupant) .. "@" .. occupant
  reply[#reply + 1] = string.match(redis.call("HGET", runs, occupant) or "", "^processing %S+ %S+ (%d+)") or ""
  reply[#reply + 1] = text_of(redis.call("ZCARD", behind))
  reply[#reply + 1] = table.concat(waiters, " ")
end
return reply
