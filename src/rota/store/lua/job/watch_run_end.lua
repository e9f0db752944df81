-- watch_run_end: no change of state
--
-- Watches for a run's end: registers a client to be notified of it. Checking and registering are one step, so the end
-- cannot fall in between. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS runs     hash  run -> run record: state, claim, worker, times, counts
-- KEYS waiters  hash  run -> clients that wait for its end
-- ARGV[1] id
-- ARGV[2] run      "" for the newest of the id
-- ARGV[3] client   client to notify
--
-- Returns "missing", or the run and "ended" | "waiting"

-- @include find_run_by_id
-- @include read_fields_of_run_record

local found = find_run_by_id(id, run)
if not found then return { "missing" } end
local line = redis.call("HGET", K.runs, found)
local state = state_in_record(line)
if state == "completed" or state == "failed" or state == "cancelled" then return { found, "ended" } end
local clients = redis.call("HGET", K.waiters, found)
if not clients then
  redis.call("HSET", K.waiters, found, client)
elseif not string.find(" " .. clients .. " ", " " .. client .. " ", 1, true) then
  redis.call("HSET", K.waiters, found, clients .. " " .. client)
end
return { found, "waiting" }
