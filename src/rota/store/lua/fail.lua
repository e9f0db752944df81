-- fail: processing -> scheduled | pending | failed
--
-- Ends an attempt that failed: the run waits for its next attempt, or becomes a dead letter. The delay is the
-- worker's arithmetic; the check of the claim is made here. Sent again with the same claim, it says "already".
--
-- flags: allow-oom
-- KEYS[1] meta        hash    totals
-- KEYS[2] jobs        hash    run -> record
-- KEYS[3] runs        hash    run -> what happened to it
-- KEYS[4] ids         hash    chosen id -> newest run
-- KEYS[5] named       hash    run -> chosen id
-- KEYS[6] processing  zset    run -> lease deadline, ms
-- KEYS[7] stopping    zset    run whose handler has yet to stop -> lease
-- KEYS[8] results     hash    run -> result
-- KEYS[9] errors      hash    run -> last error
-- KEYS[10] history    hash    run -> lines of JSON
-- KEYS[11] progress   hash    run -> progress
-- KEYS[12] logs       hash    run -> sizes of its log
-- KEYS[13] log        prefix  of one list per run, `log:<run>`
-- KEYS[14] waiters    hash    run -> waiting clients
-- KEYS[15] rules      set     retention lists in use
-- KEYS[16] kept       prefix  of one list per retention rule, `kept:<state>:<rule>`
-- KEYS[17] events     stream  one entry per transition
-- KEYS[18] failed     zset    run -> time it ended, ms
-- KEYS[19] pending    zset    run -> place
-- KEYS[20] scheduled  zset    run -> due score
-- KEYS[21] idle       zset    waiting workers
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3…] five for each run: run, claim, moment of the next attempt or "final", retention rule, error as JSON
--
-- Returns index and "already" | "missing" | "cancelled" | "lease_lost" for each run that was refused

-- @include now_ms
-- @include text_of
-- @include moment
-- @include place
-- @include wake
-- @include emit
-- @include note
-- @include summary
-- @include record
-- @include release
-- @include refusal
-- @include forget
-- @include retain
-- @include finish
-- @include retry

local now = now_ms()
local refused, again, by_rule = {}, {}, {}

for at = 3, #ARGV, 5 do
  local run, claim, next_attempt, rule, err = unpack(ARGV, at, at + 4)
  local line = redis.call("HGET", runs, run)
  if is_claim(line, "processing", claim) then
    local r = read_record(line)
    r.failures = r.failures + 1
    redis.call("ZREM", processing, run)
    redis.call("HDEL", progress, run)
    redis.call("HSET", errors, run, err)
    local state
    if next_attempt == "final" then
      state, r.state, r.ended_at = "failed", "failed", text_of(now)
      redis.call("HSET", runs, run, write_record(r))
      by_rule[rule] = by_rule[rule] or {}
      table.insert(by_rule[rule], run)
    else
      state = retry(run, r, moment(next_attempt, now), now)
      again[#again + 1] = run
    end
    note(run, {
      at = now, verb = "fail", state = state, worker = r.worker, attempt = tonumber(r.attempt),
      since = tonumber(r.claimed_at),
      note = summary(err),
    })
  else
    refused[#refused + 1] = text_of((at - 3) / 5)
    refused[#refused + 1] = refusal(run, line, claim)
  end
end

emit("fail", again)
finish(failed, "failed", by_rule, now)
if #again > 0 then wake(1) end
return refused
