-- complete: processing -> completed
--
-- Ends runs whose attempt succeeded and gives their leases back. A worker that lost a lease changes nothing. Sent
-- again with the same claim, it says "already".
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
-- KEYS[18] completed  zset    run -> time it ended, ms
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3…] four for each run: run, claim, retention rule, encoded result ("" for null)
--
-- Returns index and "already" | "missing" | "cancelled" | "lease_lost" for each run that was refused

-- @include now_ms
-- @include text_of
-- @include emit
-- @include record
-- @include release
-- @include refusal
-- @include forget
-- @include retain
-- @include finish

local now = now_ms()
local at, asked, refused = text_of(now), {}, {}
for i = 3, #ARGV, 4 do asked[#asked + 1] = ARGV[i] end
local lines = redis.call("HMGET", runs, unpack(asked))
local done, ended, by_rule, kept_results, is_done = {}, {}, {}, {}, {}

for i, run in ipairs(asked) do
  local claim, rule, result = unpack(ARGV, 4 * i, 4 * i + 2)
  if is_done[run] then
    refused[#refused + 1], refused[#refused + 2] = text_of(i - 1), "already"
  elseif is_claim(lines[i], "processing", claim) then
    is_done[run] = true
    -- Only the state and the end differ: "processing … - " becomes "completed … 1763280000000 ".
    done[#done + 1], done[#done + 2] = run, "completed" .. string.sub(lines[i], 11, -3) .. at .. " "
    ended[#ended + 1] = run
    by_rule[rule] = by_rule[rule] or {}
    table.insert(by_rule[rule], run)
    if result ~= "" then kept_results[#kept_results + 1], kept_results[#kept_results + 2] = run, result end
  else
    refused[#refused + 1] = text_of(i - 1)
    refused[#refused + 1] = refusal(run, lines[i], claim)
  end
end

if #ended > 0 then
  redis.call("ZREM", processing, unpack(ended))
  redis.call("HSET", runs, unpack(done))
  if #kept_results > 0 then redis.call("HSET", results, unpack(kept_results)) end
  finish(completed, "completed", by_rule, now)
end
return refused
