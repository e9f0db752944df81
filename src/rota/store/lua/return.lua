-- return: processing -> scheduled | blocked | pending | failed
--
-- A worker gives back what it will not finish: the run keeps its place and no failure is spent. One that may run
-- only once and has started is recorded as failed. Sent again with the same claim, it says "already".
--
-- flags: allow-oom
-- KEYS runs  hash  run -> what happened to it
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3…] three for each run: run, claim, "started" or "unstarted"
--
-- Returns index and "already" | "missing" | "cancelled" | "lease_lost" for each run that was refused

-- @include now_ms
-- @include policy
-- @include record
-- @include refusal
-- @include stall
-- @include tally
-- @include text_of
-- @include wake

local now = now_ms()
local refused, unstarted, lost, is_lost = {}, {}, {}, {}
for at = 3, #ARGV, 3 do
  local run, claim, started = unpack(ARGV, at, at + 2)
  local line = redis.call("HGET", runs, run)
  if is_lost[run] then
    refused[#refused + 1], refused[#refused + 2] = text_of((at - 3) / 3), "already"
  elseif is_claim(line, "processing", claim) then
    lost[#lost + 1], is_lost[run] = run, true
    if started == "unstarted" then unstarted[run] = true end
  else
    refused[#refused + 1] = text_of((at - 3) / 3)
    refused[#refused + 1] = refusal(run, line, claim, now)
  end
end

local released = stall(lost, now, "reports", function(run)
  return not unstarted[run] and policy(run).at_most_once, unstarted[run]
end)
wake(math.min(released, 8))
write_tally(now)
return refused
