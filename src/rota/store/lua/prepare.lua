-- prepare: no change of state
--
-- Writes jobs that come after others, as yet invisible: they are tied to their parents next, wherever those live, and
-- then `commit` makes them visible. What nobody commits within a minute is swept. An id with an unfinished run is not
-- taken: `enqueue` knows what to do. Sent again with the same call number, it says what the first one did.
--
-- KEYS meta    hash  counter `run`
-- KEYS jobs    hash  run -> record
-- KEYS unborn  zset  run -> since, ms
-- KEYS plans   hash  run -> priority, due and expiry
-- KEYS ids     hash  chosen id -> its newest run
-- KEYS steps   set   runs that belong to a workflow: a purge leaves them alone
-- ARGV[1] call    number of this call
-- ARGV[2] patience_ms  when what nobody has committed is swept, but for a minute
-- ARGV[3] kind    "step" of a workflow, or "job"
-- ARGV[4…] seven for each job: chosen id or "", random suffix, priority, due moment, expiry moment or "", rest of the
--          record, and what it comes after, see `tie`
--
-- Returns the number before the first run made, then the index of each job whose id has an unfinished run

-- @include moment
-- @include now_ms
-- @include replay
-- @include run_name
-- @include text_of
-- @include tie
-- @include unfinished

local before = recall("prepare", call)
if before then return before == "" and { "0" } or cmsgpack.unpack(before) end

local now = now_ms()
local number = tonumber(redis.call("HGET", meta, "run") or 0)
local outcome = { text_of(number) }
for at = 4, #ARGV, 7 do
  local id, suffix, priority, due, expiry, rest, names = unpack(ARGV, at, at + 6)
  if id ~= "" and (unfinished(id) or (kind == "step" and redis.call("HEXISTS", ids, id) == 1)) then
    outcome[#outcome + 1] = text_of((at - 4) / 7)
  else
    number = number + 1
    local run = run_name(number)
    local head = id ~= "" and "=" .. id or suffix
    redis.call("HSET", jobs, run, head .. " " .. text_of(now) .. "\n" .. rest)
    local ends = expiry ~= "" and text_of(moment(expiry, now)) or "-"
    redis.call("HSET", plans, run, priority .. " " .. text_of(moment(due, now)) .. " " .. ends)
    redis.call("ZADD", unborn, text_of(now + patience_ms), run)
    if kind == "step" then redis.call("SADD", steps, run) end
    tie(run, names)
  end
end
redis.call("HSET", meta, "run", text_of(number))
remember("prepare", call, cmsgpack.pack(outcome))
return outcome
