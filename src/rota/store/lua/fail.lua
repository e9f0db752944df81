-- fail: processing -> scheduled | blocked | pending | failed
--
-- Ends an attempt that failed: the run waits for its next attempt, or becomes a dead letter. The delay is the
-- worker's arithmetic; the check of the claim is made here. Sent again with the same claim, it says "already".
--
-- flags: allow-oom
-- KEYS runs        hash  run -> what happened to it
-- KEYS processing  zset  run -> lease deadline, ms
-- KEYS errors      hash  run -> last error
-- KEYS progress    hash  run -> progress
-- KEYS failed      zset  run -> time it ended, ms
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3…] five for each run: run, claim, moment of the next attempt or "final", retention rule, error as JSON
--
-- Returns index and "already" | "missing" | "cancelled" | "lease_lost" for each run that was refused

-- @include alert
-- @include count_run
-- @include depart
-- @include emit
-- @include finish
-- @include group
-- @include moment
-- @include note
-- @include now_ms
-- @include place
-- @include record
-- @include refusal
-- @include summary
-- @include tally
-- @include text_of
-- @include wait_again
-- @include wake

local now = now_ms()
local refused, again, dead, by_rule = {}, {}, {}, {}

for at = 3, #ARGV, 5 do
  local run, claim, next_attempt, rule, err = unpack(ARGV, at, at + 4)
  local line = redis.call("HGET", runs, run)
  if is_claim(line, "processing", claim) then
    local r = read_record(line)
    r.failures = r.failures + 1
    local task = count_run(run, "failed", now, r.claimed_at)
    redis.call("ZREM", processing, run)
    redis.call("HDEL", progress, run)
    redis.call("HSET", errors, run, err)
    group(run, err, next_attempt == "final", now)
    local state
    if next_attempt == "final" then
      state, r.state, r.ended_at = "failed", "failed", text_of(now)
      redis.call("HSET", runs, run, write_record(r))
      by_rule[rule] = by_rule[rule] or {}
      table.insert(by_rule[rule], run)
      dead[#dead + 1] = run
      count(task, "dead")
    else
      state = wait_again(run, r, place(priority_of(r.place), moment(next_attempt, now)), now)
      again[#again + 1] = run
      count(task, "retried")
    end
    note(run, {
      at = now, verb = "fail", state = state, worker = r.worker, attempt = tonumber(r.attempt),
      since = tonumber(r.claimed_at),
      note = summary(err),
    })
  else
    refused[#refused + 1] = text_of((at - 3) / 5)
    refused[#refused + 1] = refusal(run, line, claim, now)
  end
end

emit("fail", again)
local alerted = alert(dead, now)
local freed = depart(dead, "failed", now)
finish(failed, "failed", by_rule, now)
wake(freed + math.min(#again, 1) + alerted)
write_tally(now)
return refused
