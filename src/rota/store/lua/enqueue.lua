-- enqueue: (none) -> scheduled | pending
--
-- Makes runs, each with its record and its place in an index, all in one step. An id that still has an unfinished
-- run is refused and that run named; the others of the batch are made all the same. Sent again with the same call
-- number, it makes nothing and says what the first one did.
--
-- KEYS meta       hash  counter `run`
-- KEYS jobs       hash  run -> record
-- KEYS runs       hash  run -> what happened to it
-- KEYS ids        hash  chosen id -> newest run
-- KEYS named      hash  run -> chosen id
-- KEYS pending    zset  run -> place
-- KEYS scheduled  zset  run -> due score
-- KEYS expiring   zset  run -> time it must have started by, ms
-- KEYS stopping   zset  run whose handler has yet to stop -> lease
-- ARGV[1] queue
-- ARGV[2] inbox      prefix of the channels
-- ARGV[3] call       number of this call
-- ARGV[4…] six for each job: chosen id or "", random suffix, priority, due moment, expiry moment or "", rest of
--          the record (options, task, arguments)
--
-- Returns the number before the first run made, then index and run for each job that was refused

-- @include now_ms
-- @include text_of
-- @include moment
-- @include run_name
-- @include place
-- @include resolve
-- @include replay
-- @include wake
-- @include emit

local before = recall("enqueue", call)
if before then return before == "" and { "0" } or cmsgpack.unpack(before) end

local now = now_ms()
local first = tonumber(redis.call("HGET", meta, "run") or 0)
local number, refused = first, {}
local made, records, due_now, due_later, expiries, chosen, chosen_ids = {}, {}, {}, {}, {}, {}, {}
local seen = {}

-- The unfinished run of that id, if there is one; also of an id that was made up and is now chosen again.
local function unfinished(id)
  if seen[id] then return seen[id] end
  local run = redis.call("HGET", ids, id) or (#id == 18 and resolve(id, ""))
  if not run then return nil end
  local line = redis.call("HGET", runs, run)
  local state = line and string.match(line, "^%S+")
  if state ~= "completed" and state ~= "failed" and state ~= "cancelled" then return run end
  return redis.call("ZSCORE", stopping, run) and run or nil
end

for at = 4, #ARGV, 6 do
  local id, suffix, priority, due, expiry, rest = unpack(ARGV, at, at + 5)
  local holder = id ~= "" and unfinished(id)
  if holder then
    refused[#refused + 1] = text_of((at - 4) / 6)
    refused[#refused + 1] = holder
  else
    number = number + 1
    local run = run_name(number)
    made[#made + 1] = run
    local head = suffix
    if id ~= "" then
      seen[id], head = run, "=" .. id
      chosen[#chosen + 1], chosen[#chosen + 2] = run, id
      chosen_ids[#chosen_ids + 1], chosen_ids[#chosen_ids + 2] = id, run
    end
    records[#records + 1], records[#records + 2] = run, head .. " " .. text_of(now) .. "\n" .. rest
    local start = moment(due, now)
    if start <= now then
      due_now[#due_now + 1], due_now[#due_now + 2] = text_of(place(priority, start)), run
    else
      due_later[#due_later + 1], due_later[#due_later + 2] = text_of(due_score(priority, start)), run
    end
    if expiry ~= "" then
      expiries[#expiries + 1], expiries[#expiries + 2] = text_of(moment(expiry, now)), run
    end
  end
end

if #made > 0 then
  redis.call("HSET", meta, "run", text_of(number))
  redis.call("HSET", jobs, unpack(records))
  if #chosen > 0 then
    redis.call("HSET", named, unpack(chosen))
    redis.call("HSET", ids, unpack(chosen_ids))
  end
  if #expiries > 0 then redis.call("ZADD", expiring, unpack(expiries)) end
  if #due_now > 0 then redis.call("ZADD", pending, unpack(due_now)) end
  if #due_later > 0 then redis.call("ZADD", scheduled, unpack(due_later)) end
  emit("enqueue", made)
  if #due_now > 0 then
    wake(math.min(#due_now / 2, 8))
  elseif #due_later > 0 and redis.call("ZRANGE", scheduled, 0, 0)[1] >= made[1] then
    -- The next to fall due is new: one waiting worker must hear of it and set its alarm.
    wake(1)
  end
end

local outcome = { text_of(first), unpack(refused) }
remember("enqueue", call, cmsgpack.pack(outcome))
return outcome
