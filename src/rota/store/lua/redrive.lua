-- redrive: failed -> blocked | pending
--
-- Gives dead letters another life: counts start again, attempts go on growing, and each takes a new place. One whose
-- id has a newer unfinished run is left where it is. Sent again with the same token, it says what the first one did.
--
-- KEYS meta      hash  totals
-- KEYS runs      hash  run -> what happened to it
-- KEYS ids       hash  chosen id -> newest run
-- KEYS named     hash  run -> chosen id
-- KEYS jobs      hash  run -> record
-- KEYS locked    hash  run -> its lock
-- KEYS failed    zset  run -> time it ended, ms
-- ARGV[1] queue
-- ARGV[2] inbox      prefix of the channels
-- ARGV[3…] two for each job: id, run ("" for the newest of the id)
--
-- Returns "redriven" | "missing" | "in_use" | the state that forbids it, for each job, joined by spaces

-- @include bequeath
-- @include emit
-- @include terms
-- @include lanes
-- @include note
-- @include now_ms
-- @include once
-- @include parts
-- @include place
-- @include record
-- @include resolve
-- @include text_of
-- @include unfinished
-- @include wake

local function is_of_group(word) return string.find(word, "^group=") end

local function redrive_one(id, run, now)
  local found = resolve(id, run)
  if not found then return "missing" end
  local line = redis.call("HGET", runs, found)
  local r = line and read_record(line)
  if not r or r.state ~= "failed" then return r and r.state or "waiting" end
  local holder = unfinished(id)
  if holder and holder ~= found then return "in_use" end
  -- An id that nobody chose finds its run by itself, unless somebody chose it later.
  if redis.call("HEXISTS", named, found) > 0 then
    redis.call("HSET", ids, id, found)
  else
    redis.call("HDEL", ids, id)
  end
  r.state, r.claim, r.ended_at, r.reason = "waiting", "-", "-", ""
  r.failures, r.stalls, r.snoozes, r.handbacks = 0, 0, 0, 0
  r.place = text_of(place(priority_of(r.place), now))
  redis.call("HSET", runs, found, write_record(r))
  redis.call("ZREM", failed, found)
  drop_terms(found, is_of_group)
  local _, options = split_record(redis.call("HGET", jobs, found))
  local lock = split_options(options or "")[6]
  if lock ~= "" then redis.call("HSET", locked, found, lock) end
  local state = enter(found, r.place, lock ~= "" and lock or nil)
  bequeath({ found }, "waiting", now)
  note(found, { at = now, verb = "redrive", state = state })
  return "redriven", found
end

local function redrive()
  local now, outcomes, moved = now_ms(), {}, {}
  for at = 3, #ARGV, 2 do
    local outcome, found = redrive_one(ARGV[at], ARGV[at + 1], now)
    outcomes[#outcomes + 1] = outcome
    moved[#moved + 1] = found
  end
  if #moved > 0 then
    redis.call("HINCRBY", meta, "redriven", #moved)
    emit("redrive", moved)
    wake(math.min(#moved, 8))
  end
  return table.concat(outcomes, " ")
end

return once(redrive)
