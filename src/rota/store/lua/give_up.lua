-- give_up: processing -> cancelled
--
-- A handler asked to end its own run as cancelled: its attempt is over, so nothing is left to stop. Sent again with the
-- same claim, it says "cancelled".
--
-- flags: allow-oom
-- KEYS[1] meta        hash    totals
-- KEYS[2] jobs        hash    run -> record
-- KEYS[3] runs        hash    run -> what happened to it
-- KEYS[4] ids         hash    chosen id -> newest run
-- KEYS[5] named       hash    run -> chosen id
-- KEYS[6] processing  zset    run -> lease deadline, ms
-- KEYS[7] stopping    zset    run whose handler has yet to stop -> lease
-- KEYS[8] cancelled   zset    run -> time it ended, ms
-- KEYS[9] results     hash    run -> result
-- KEYS[10] errors     hash    run -> last error
-- KEYS[11] history    hash    run -> lines of JSON
-- KEYS[12] progress   hash    run -> progress
-- KEYS[13] logs       hash    run -> sizes of its log
-- KEYS[14] log        prefix  of one list per run, `log:<run>`
-- KEYS[15] waiters    hash    run -> waiting clients
-- KEYS[16] rules      set     retention lists in use
-- KEYS[17] kept       prefix  of one list per retention rule, `kept:<state>:<rule>`
-- KEYS[18] events     stream  one entry per transition
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3…] three for each run: run, claim, reason
--
-- Returns index and "already" | "missing" | "cancelled" | "lease_lost" for each run that was refused

-- @include now_ms
-- @include text_of
-- @include emit
-- @include note
-- @include record
-- @include release
-- @include refusal
-- @include policy
-- @include forget
-- @include retain
-- @include finish
-- @include cancel_run

local now, refused = now_ms(), {}
for at = 3, #ARGV, 3 do
  local run, claim, reason = unpack(ARGV, at, at + 2)
  local line = redis.call("HGET", runs, run)
  if is_claim(line, "processing", claim) then
    redis.call("ZREM", processing, run)
    cancel_run(run, read_record(line), reason, now)
  else
    refused[#refused + 1] = text_of((at - 3) / 3)
    refused[#refused + 1] = refusal(run, line, claim)
  end
end
return refused
