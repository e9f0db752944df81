-- claim: pending -> processing
--
-- Leases the first runs of the queue to a worker, after doing what has become due: promote, expire, reap. A worker
-- that wants more than there is joins the waiting ones in the same step, so no wake-up can fall in between. Sent
-- again with the same call number, it returns the same runs, as far as this claim still owns them.
--
-- flags: allow-oom
-- KEYS meta        hash  counter `fence`, is_paused, tick
-- KEYS jobs        hash  run -> record
-- KEYS runs        hash  run -> what happened to it
-- KEYS pending     zset  run -> place
-- KEYS processing  zset  run -> lease deadline, ms
-- KEYS expiring    zset  run -> time it must have started by, ms
-- KEYS outbox      zset  run whose dependents have yet to hear of it -> when to tell them
-- KEYS idle        zset  waiting workers
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3] call        number of this call
-- ARGV[4] worker
-- ARGV[5] token       random, made by the worker for this claim
-- ARGV[6] limit       how many it has slots for
-- ARGV[7] lease_ms
-- ARGV[8] bound       how many runs the other verbs may move
--
-- Returns fence, ms until something falls due ("" if nothing will), words ("outbox": dependents must be told;
-- "fail:<ms>": when the failures of the queue want to be looked at), then run, counts ("" at the first attempt) and
-- record for each run claimed

-- @include count_started
-- @include emit
-- @include failures_due
-- @include housekeeping
-- @include now_ms
-- @include record
-- @include replay
-- @include tally
-- @include text_of
-- @include tick
-- @include wake

local now = now_ms()
limit, lease_ms, bound = tonumber(limit), tonumber(lease_ms), tonumber(bound)

-- What a worker gets to see of a run.
local function answer(reply, run, counts, body)
  local size = #reply
  reply[size + 1], reply[size + 2], reply[size + 3] = run, counts, body or ""
end

local function counts_of(line)
  local attempt, failures, stalls, snoozes, handbacks =
    string.match(line, "^%S+ %S+ %S+ %S+ %S+ (%d+) (%d+) (%d+) (%d+) (%d+)")
  local counts = attempt .. " " .. failures .. " " .. stalls .. " " .. snoozes .. " " .. handbacks
  return counts == "1 0 0 0 0" and "" or counts
end

local before = recall("claim", call)
if before == "" then return { "0", "", "" } end
if before then
  local fence, claimed = string.match(before, "^(%S+) ?(.*)$")
  local reply = { fence, "0", "" }
  for run in string.gmatch(claimed, "%S+") do
    local line = redis.call("HGET", runs, run)
    if is_claim(line, "processing", fence .. "." .. token) then
      answer(reply, run, counts_of(line), redis.call("HGET", jobs, run))
    end
  end
  return reply
end

local may_reap, reap_from = tick(now, lease_ms)
local more = housekeeping(now, may_reap, bound)
if more then
  -- That was work enough for one call: the worker comes again at once. While some are late that must not start any
  -- more, nothing is leased.
  local late = redis.call("ZRANGE", expiring, "-inf", text_of(now), "BYSCORE", "LIMIT", 0, 1)
  limit = #late > 0 and 0 or math.min(limit, bound)
end
local is_paused = redis.call("HGET", meta, "is_paused")
local popped = (limit > 0 and not is_paused) and redis.call("ZPOPMIN", pending, limit) or {}
local reply = { "0", "", "" }

if #popped > 0 then
  local fence = redis.call("HINCRBY", meta, "fence", 1)
  reply[1] = text_of(fence)
  local claim, at, deadline = text_of(fence) .. "." .. token, text_of(now), text_of(now + lease_ms)
  local claimed, lines, leases = {}, {}, {}
  for i = 1, #popped, 2 do claimed[#claimed + 1] = popped[i] end
  local earlier = redis.call("HMGET", runs, unpack(claimed))
  local bodies = redis.call("HMGET", jobs, unpack(claimed))
  local fresh = "processing " .. claim .. " " .. worker .. " " .. at .. " "
  for i, run in ipairs(claimed) do
    local line, counts
    if earlier[i] then
      local r = read_record(earlier[i])
      r.state, r.claim, r.worker, r.claimed_at, r.place = "processing", claim, worker, at, popped[2 * i]
      r.attempt, r.ended_at, r.reason = r.attempt + 1, "-", ""
      line = write_record(r)
      counts = counts_of(line)
    else
      line, counts = fresh .. popped[2 * i] .. " 1 0 0 0 0 - ", ""
    end
    lines[#lines + 1], lines[#lines + 2] = run, line
    leases[#leases + 1], leases[#leases + 2] = deadline, run
    answer(reply, run, counts, bodies[i])
  end
  redis.call("HSET", runs, unpack(lines))
  redis.call("ZADD", processing, unpack(leases))
  if redis.call("EXISTS", expiring) > 0 then redis.call("ZREM", expiring, unpack(claimed)) end
  emit("claim", claimed)
  count_started(popped, bodies, now)
  remember("claim", call, text_of(fence) .. " " .. table.concat(claimed, " "))
end

local taken = #popped / 2
if taken < limit then
  redis.call("ZADD", idle, text_of(now), worker)
else
  -- Nothing free any more: who is woken next must be another one.
  redis.call("ZREM", idle, worker)
  if not is_paused and redis.call("ZCARD", pending) > 0 then wake(1) end
end
write_tally(now)
reply[2] = more and "0" or next_due(now, reap_from)
local unsent = redis.call("ZRANGE", outbox, 0, 0, "WITHSCORES")[2]
if unsent and tonumber(unsent) <= now then reply[3] = "outbox " end
reply[3] = reply[3] .. failures_due(now)
return reply
