-- claim: pending -> processing
--
-- Leases the first runs of the queue to a worker, after doing what has become due: promote, expire, reap. A worker
-- that wants more than there is joins the waiting ones in the same step, so no wake-up can fall in between; it may leave
-- its next claim there, for `hand_over`. Sent again with the same call number, it returns the same runs, as far as this
-- claim still owns them.
--
-- flags: allow-oom
-- KEYS jobs      hash  run -> record
-- KEYS runs      hash  run -> what happened to it
-- KEYS pending   zset  run -> place
-- KEYS expiring  zset  run -> time it must have started by, ms
-- KEYS idle      zset  waiting workers
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3] call        number of this call
-- ARGV[4] worker
-- ARGV[5] token       random, made by the worker for this claim
-- ARGV[6] limit       how many it has slots for
-- ARGV[7] lease_ms
-- ARGV[8] bound       how many runs the other verbs may move
-- ARGV[9] next_token  the token of its next claim, if that may be carried out for it; else ""
--
-- Returns fence, ms until something falls due ("" if nothing will), words ("outbox": dependents must be told;
-- "fail:<ms>": when the failures of the queue want to be looked at; "vanished:<run>,…": taken from workers that are gone),
-- the runs claimed with spaces between, their counts
-- with commas between (nothing for a first attempt; "" where all are), then the record of each

-- @include failures_due
-- @include heads
-- @include lease
-- @include now_ms
-- @include record
-- @include replay
-- @include tally
-- @include text_of
-- @include tick
-- @include wake
-- @rare housekeeping

local now = now_ms()
limit, lease_ms, bound = tonumber(limit), tonumber(lease_ms), tonumber(bound)

-- What a worker gets to see of the runs.
local function answer(fence, claimed, counts, bodies)
  local has_counts = false
  for i = 1, #claimed do has_counts = has_counts or counts[i] ~= "" end
  local reply = { fence, "", "", table.concat(claimed, " "), has_counts and table.concat(counts, ",") or "" }
  for i = 1, #claimed do reply[5 + i] = bodies[i] or "" end
  return reply
end

-- How one that waits and leaves its next claim is called among those that wait.
local function left_claim(number, its_token)
  return table.concat({ worker, text_of(number), its_token, text_of(lease_ms) }, " ")
end

local before = recall("claim", call)
if before == "" then return { "0", "", "", "", "" } end
if before then
  local fence, list = string.match(before, "^(%S+) ?(.*)$")
  local claimed, counts, bodies = {}, {}, {}
  for run in string.gmatch(list, "%S+") do
    local line = redis.call("HGET", runs, run)
    if is_claim(line, "processing", fence .. "." .. token) then
      claimed[#claimed + 1], counts[#counts + 1] = run, counts_of(line)
      bodies[#bodies + 1] = redis.call("HGET", jobs, run) or ""
    end
  end
  local reply = answer(fence, claimed, counts, bodies)
  reply[2] = "0"
  return reply
end

local may_reap, reap_from, is_paused = tick(now, lease_ms)
local heads, more, vanished = read_heads(), false, {}

local function is_due(at) return at and at <= now end

if is_due(heads.scheduled) or is_due(heads.expiring) or (may_reap and (is_due(heads.processing) or is_due(heads.stopping))) then
  more, vanished = housekeeping(now, may_reap, bound)
  heads = read_heads()
end
-- That was work enough for one call: the worker comes again at once. While some are late that must not start any
-- more, nothing is leased.
if more then limit = is_due(heads.expiring) and 0 or math.min(limit, bound) end
local popped = (limit > 0 and not is_paused) and redis.call("ZPOPMIN", pending, limit) or {}
local reply

if #popped > 0 then
  local fence, claimed, counts, bodies = lease(popped, worker, token, now, lease_ms)
  heads.processing = math.min(heads.processing or math.huge, now + lease_ms)
  if heads.expiring and redis.call("ZREM", expiring, unpack(claimed)) > 0 then heads.expiring = first_of(expiring, 1) end
  reply = answer(fence, claimed, counts, bodies)
  remember("claim", call, fence .. " " .. reply[4])
else
  reply = answer("0", {}, {}, {})
end

local taken = #popped / 2
-- The claim that it left when it began to wait is this one.
redis.call("ZREM", idle, worker, left_claim(call, token))
if taken < limit then
  redis.call("ZADD", idle, text_of(now), next_token == "" and worker or left_claim(call + 1, next_token))
else
  -- Nothing free any more: who is woken next must be another one.
  if not is_paused and redis.call("ZCARD", pending) > 0 then wake(1) end
end
write_tally(now)
reply[2] = more and "0" or next_due(heads, now, reap_from)
if is_due(heads.outbox) then reply[3] = "outbox " end
if heads.are_rare then reply[3] = reply[3] .. failures_due(now) end
if #vanished > 0 then reply[3] = reply[3] .. " vanished:" .. table.concat(vanished, ",") end
return reply
