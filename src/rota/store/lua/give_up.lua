-- give_up: processing -> cancelled
--
-- A handler asked to end its own run as cancelled: its attempt is over, so nothing is left to stop. Sent again with the
-- same claim, it says "cancelled".
--
-- flags: allow-oom
-- KEYS runs        hash  run -> what happened to it
-- KEYS processing  zset  run -> lease deadline, ms
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3…] three for each run: run, claim, reason
--
-- Returns index and "already" | "missing" | "cancelled" | "lease_lost" for each run that was refused

-- @include cancel_run
-- @include depart
-- @include now_ms
-- @include record
-- @include refusal
-- @include tally
-- @include text_of
-- @include wake

local now, refused = now_ms(), {}
for at = 3, #ARGV, 3 do
  local run, claim, reason = unpack(ARGV, at, at + 2)
  local line = redis.call("HGET", runs, run)
  if is_claim(line, "processing", claim) then
    redis.call("ZREM", processing, run)
    local freed = depart({ run }, "cancelled", now)
    cancel_run(run, read_record(line), reason, now)
    wake(freed)
  else
    refused[#refused + 1] = text_of((at - 3) / 3)
    refused[#refused + 1] = refusal(run, line, claim, now)
  end
end
write_tally(now)
return refused
