-- watch: no change of state
--
-- Asks to be told when a run ends. Looking and asking are one step, so the end cannot fall in between. Harmless when
-- sent again.
--
-- flags: allow-oom
-- KEYS runs     hash  run -> what happened to it
-- KEYS waiters  hash  run -> waiting clients
-- ARGV[1] id
-- ARGV[2] run      "" for the newest of the id
-- ARGV[3] client   whose inbox to tell
--
-- Returns "missing", or the run and "ended" | "waiting"

-- @include resolve

local found = resolve(id, run)
if not found then return { "missing" } end
local line = redis.call("HGET", runs, found)
local state = line and string.match(line, "^%S+")
if state == "completed" or state == "failed" or state == "cancelled" then return { found, "ended" } end
local clients = redis.call("HGET", waiters, found)
if not clients then
  redis.call("HSET", waiters, found, client)
elseif not string.find(" " .. clients .. " ", " " .. client .. " ", 1, true) then
  redis.call("HSET", waiters, found, clients .. " " .. client)
end
return { found, "waiting" }
