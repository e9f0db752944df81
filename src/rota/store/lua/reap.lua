-- reap: processing -> scheduled | blocked | pending | failed
--
-- A supervisor says that the process which ran these is dead: a stall is charged and they come back at once,
-- without waiting for their leases. Sent again with the same claim, it says "already".
--
-- flags: allow-oom
-- KEYS runs  hash  run -> what happened to it
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3…] two for each run: run, claim
--
-- Returns index and "already" | "missing" | "cancelled" | "lease_lost" for each run that was refused

-- @include now_ms
-- @include record
-- @include refusal
-- @include stall
-- @include tally
-- @include text_of
-- @include wake

local now = now_ms()
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
    refused[#refused + 1] = refusal(run, line, claim, now)
  end
end
local released = stall(lost, now, "reports", function() return true end)
wake(math.min(released, 8))
write_tally(now)
return refused
