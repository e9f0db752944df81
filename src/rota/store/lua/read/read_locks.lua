-- read_locks: no change of state
--
-- Reads the locks of a queue that are held or about to be, page by page: the occupant of each, and the runs that wait
-- for it.
--
-- flags: no-writes
-- KEYS runs   hash    run -> run record: state, claim, worker, times, counts
-- KEYS locks  hash    lock -> its occupant: the run that is pending or processing
-- KEYS lane   prefix  `lane:…`: runs that are due and wait for one lock -> score
-- ARGV[1] from   cursor of the previous call, "0" at first
-- ARGV[2] limit  how many, about
-- ARGV[3] shown  how many waiting runs of each are returned
-- ARGV[4] only   name of the only lock to read, or ""
--
-- Returns the cursor, "0" at the end; then for each lock its name, its occupant, since when that runs or "", how many
-- wait, and the first of those, separated by spaces

-- @include format_integer
-- @include read_all_data_of_run
-- @include read_fields_of_run_record

local found, reached = {}, "0"
if only ~= "" then
  local occupant = redis.call("HGET", K.locks, only)
  if occupant then found = { only, occupant } end
else
  local page = redis.call("HSCAN", K.locks, from, "COUNT", limit)
  reached, found = page[1], page[2]
end
local reply = { reached }
for i = 1, #found, 2 do
  local lock, occupant = found[i], found[i + 1]
  local behind, waiters = K.lane .. ":" .. lock, {}
  for _, run in ipairs(redis.call("ZRANGE", behind, 0, shown - 1)) do
    waiters[#waiters + 1] = id_of(run) .. "@" .. run
  end
  local line = redis.call("HGET", K.runs, occupant)
  local is_processing = state_in_record(line) == "processing"
  reply[#reply + 1] = lock
  reply[#reply + 1] = id_of(occupant) .. "@" .. occupant
  reply[#reply + 1] = is_processing and claimed_at_in_record(line) or ""
  reply[#reply + 1] = format_integer(redis.call("ZCARD", behind))
  reply[#reply + 1] = table.concat(waiters, " ")
end
return reply
