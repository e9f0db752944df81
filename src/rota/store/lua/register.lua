-- register: no change of state
--
-- In the slot of the parents: notes which runs come after them, and says how each parent stands, so that no end can
-- fall in between. Harmless when sent again.
--
-- KEYS runs      hash    run -> what happened to it
-- KEYS stopping  zset    run whose handler has yet to stop -> lease
-- KEYS parents   set     runs that others come after
-- KEYS heirs     prefix  of one zset per parent, `heirs:<run>`
-- KEYS endings   hash    parent -> number and kind of its latest news
-- KEYS results   hash    run -> encoded result, unless it is null
-- ARGV[1…] three for each: parent's id, its run ("" for the newest), dependent as "queue run name", where the name is
--          what the dependent calls the parent
--
-- Returns "missing" | "waiting 0  " | how the parent ended, the number of that news, how long the parent is kept for a
-- redrive, and its result, with spaces between, for each

-- @include cause
-- @include resolve

local function stand(id, run, heir)
  local found = resolve(id, run)
  if not found then return "missing" end
  local line = redis.call("HGET", runs, found)
  local state = line and string.match(line, "^%S+") or "waiting"
  local has_ended = state ~= "waiting" and state ~= "processing" and not redis.call("ZSCORE", stopping, found)
  if has_ended and state == "completed" then return "completed 0  " .. (redis.call("HGET", results, found) or "") end
  local number = has_ended and string.match(redis.call("HGET", endings, found) or "0", "^%d+") or "0"
  redis.call("SADD", parents, found)
  redis.call("ZADD", heirs .. ":" .. found, "NX", number, heir)
  return has_ended and state .. " " .. number .. " " .. cause_rule(found, state) .. " " or "waiting 0  "
end

local reply = {}
for at = 1, #ARGV, 3 do reply[#reply + 1] = stand(ARGV[at], ARGV[at + 1], ARGV[at + 2]) end
return reply
