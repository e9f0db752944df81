-- reap: processing -> pending | failed
--
-- A supervisor says that the process which ran these is dead: a stall is charged and they come back at once,
-- without waiting for their leases. Sent again with the same claim, it says "already".
--
-- flags: allow-oom
-- KEYS[1] meta        hash    totals
-- KEYS[2] jobs        hash    run -> record
-- KEYS[3] runs        hash    run -> what happened to it
-- KEYS[4] ids         hash    chosen id -> newest run
-- KEYS[5] named       hash    run -> chosen id
-- KEYS[6] pending     zset    run -> place
-- KEYS[7] processing  zset    run -> lease deadline, ms
-- KEYS[8] stopping    zset    run whose handler has yet to stop -> lease
-- KEYS[9] failed      zset    run -> time it ended, ms
-- KEYS[10] results    hash    run -> result
-- KEYS[11] errors     hash    run -> last error
-- KEYS[12] history    hash    run -> lines of JSON
-- KEYS[13] progress   hash    run -> progress
-- KEYS[14] logs       hash    run -> sizes of its log
-- KEYS[15] log        prefix  of one list per run, `log:<run>`
-- KEYS[16] waiters    hash    run -> waiting clients
-- KEYS[17] rules      set     retention lists in use
-- KEYS[18] kept       prefix  of one list per retention rule, `kept:<state>:<rule>`
-- KEYS[19] idle       zset    waiting workers
-- KEYS[20] events     stream  one entry per transition
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3…] two for each run: run, claim
--
-- Returns index and "already" | "missing" | "cancelled" | "lease_lost" for each run that was refused

-- @include now_ms
-- @include text_of
-- @include wake
-- @include emit
-- @include note
-- @include record
-- @include release
-- @include refusal
-- @include policy
-- @include forget
-- @include retain
-- @include finish
-- @include stall

local refused, lost, is_lost = {}, {}, {}
for at = 3, #ARGV, 2 do
  local run, claim = ARGV[at], ARGV[at + 1]
  local line = redis.call("HGET", runs, run)
  if is_lost[run] then
    refused[#refused + 1], refused[#refused + 2] = text_of((at - 3) / 2), "already"
  elseif is_claim(line, "processing", claim) then
    lost[#lost + 1], is_lost[run] = run, true
  else
    refused[#refused + 1] = text_of((at - 3) / 2)
    refused[#refused + 1] = refusal(run, line, claim)
  end
end
local released = stall(lost, now_ms(), "reports", function() return true end)
wake(math.min(released, 8))
return refused
