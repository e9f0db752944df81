-- snooze: processing -> scheduled | blocked | pending
--
-- The handler asked to be run later: the run waits, and no failure is spent. Sent again with the same claim, it says
-- "already".
--
-- flags: allow-oom
-- KEYS runs        hash  run -> what happened to it
-- KEYS processing  zset  run -> lease deadline, ms
-- KEYS progress    hash  run -> progress
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3…] three for each run: run, claim, moment of the next attempt
--
-- Returns index and "already" | "missing" | "cancelled" | "lease_lost" for each run that was refused

-- @include emit
-- @include moment
-- @include note
-- @include now_ms
-- @include place
-- @include record
-- @include refusal
-- @include text_of
-- @include wait_again
-- @include wake

local now = now_ms()
local refused, snoozed = {}, {}
for at = 3, #ARGV, 3 do
  local run, claim, next_attempt = unpack(ARGV, at, at + 2)
  local line = redis.call("HGET", runs, run)
  if is_claim(line, "processing", claim) then
    local r = read_record(line)
    r.snoozes = r.snoozes + 1
    redis.call("ZREM", processing, run)
    redis.call("HDEL", progress, run)
    local state = wait_again(run, r, place(priority_of(r.place), moment(next_attempt, now)), now)
    note(run, { at = now, verb = "snooze", state = state, worker = r.worker, attempt = tonumber(r.attempt), since = tonumber(r.claimed_at) })
    snoozed[#snoozed + 1] = run
  else
    refused[#refused + 1] = text_of((at - 3) / 3)
    refused[#refused + 1] = refusal(run, line, claim, now)
  end
end
emit("snooze", snoozed)
if #snoozed > 0 then wake(1) end
return refused
