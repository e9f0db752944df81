-- complete: processing -> completed
--
-- Ends runs whose attempt succeeded and gives their leases back. A worker that lost a lease changes nothing. Sent
-- again with the same claim, it says "already".
--
-- flags: allow-oom
-- KEYS runs        hash  run -> what happened to it
-- KEYS processing  zset  run -> lease deadline, ms
-- KEYS results     hash  run -> result
-- KEYS completed   zset  run -> time it ended, ms
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3…] four for each run: run, claim, retention rule and task, encoded result ("" for null)
--
-- Returns index and "already" | "missing" | "cancelled" | "lease_lost" for each run that was refused

-- @include count_completed
-- @include depart
-- @include finish
-- @include now_ms
-- @include record
-- @include refusal
-- @include tally
-- @include text_of
-- @include wake

local now = now_ms()
local at, asked, refused = text_of(now), {}, {}
for i = 3, #ARGV, 4 do asked[#asked + 1] = ARGV[i] end
local lines = redis.call("HMGET", runs, unpack(asked))
local done, ended, by_rule, kept_results, is_done, rule_of, task_by = {}, {}, {}, {}, {}, {}, {}

for i, run in ipairs(asked) do
  local claim, terms, result = unpack(ARGV, 4 * i, 4 * i + 2)
  if is_done[run] then
    refused[#refused + 1], refused[#refused + 2] = text_of(i - 1), "already"
  elseif is_claim(lines[i], "processing", claim) then
    is_done[run] = true
    -- Only the state and the end differ: "processing … - " becomes "completed … 1763280000000 ".
    done[#done + 1], done[#done + 2] = run, "completed" .. string.sub(lines[i], 11, -3) .. at .. " "
    ended[#ended + 1] = run
    local rule = rule_of[terms]
    if not rule then
      rule, task_by[terms] = string.match(terms .. " ?", "^(%S*) (%S+)")
      rule_of[terms], by_rule[rule] = rule, by_rule[rule] or {}
    end
    table.insert(by_rule[rule], run)
    note_completed(task_by[terms], claim, lines[i])
    if result ~= "" then kept_results[#kept_results + 1], kept_results[#kept_results + 2] = run, result end
  else
    refused[#refused + 1] = text_of(i - 1)
    refused[#refused + 1] = refusal(run, lines[i], claim, now)
  end
end

if #ended > 0 then
  redis.call("ZREM", processing, unpack(ended))
  redis.call("HSET", runs, unpack(done))
  if #kept_results > 0 then redis.call("HSET", results, unpack(kept_results)) end
  local freed = depart(ended, "completed", now)
  finish(completed, "completed", by_rule, now)
  count_completed(now)
  write_tally(now)
  wake(freed)
end
return refused
