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
-- ARGV[3…] groups of runs that have the claim and the rule in common: claim, retention rule and task, how many, "results"
--          or "", then the runs, and behind them as many encoded results where there are any ("" for null)
--
-- Returns index and "already" | "missing" | "cancelled" | "lease_lost" for each run that was refused

-- @include count_time
-- @include depart
-- @include finish
-- @include now_ms
-- @include record
-- @include tally
-- @include text_of
-- @include wake
-- @rare refusal

local now = now_ms()
local ending, refused, index, ended_count = text_of(now) .. " ", {}, 0, 0
local done, ended, by_rule, kept_results, is_done, done_line_of = {}, {}, {}, {}, {}, {}

-- Ends those of a group that its claim still owns; says how many, and since when they have run.
local function end_group(claim, of_rule, asked, first_result)
  local lines, ended_before, since, of_rule_count = redis.call("HMGET", runs, unpack(asked)), ended_count, 0, #of_rule
  for i = 1, #asked do
    local run, line = asked[i], lines[i]
    if is_done[run] then
      refused[#refused + 1], refused[#refused + 2] = text_of(index), "already"
    elseif is_claim(line, "processing", claim) then
      is_done[run] = true
      local done_line = done_line_of[line]
      if not done_line then
        -- Only the state and the end differ: "processing … - " becomes "completed … 1763280000000 ". Runs that became due
        -- and were claimed together have the same line.
        done_line = "completed" .. string.sub(line, 11, -3) .. ending
        done_line_of[line], since = done_line, tonumber(string.match(line, "^%S+ %S+ %S+ (%d+)") or 0)
      end
      ended_count, of_rule_count = ended_count + 1, of_rule_count + 1
      done[2 * ended_count - 1], done[2 * ended_count] = run, done_line
      ended[ended_count], of_rule[of_rule_count] = run, run
      local result = first_result and ARGV[first_result + i - 1] or ""
      if result ~= "" then kept_results[#kept_results + 1], kept_results[#kept_results + 2] = run, result end
    else
      refused[#refused + 1], refused[#refused + 2] = text_of(index), refusal(run, line, claim, now)
    end
    index = index + 1
  end
  return ended_count - ended_before, since
end

local at = 3
while at <= #ARGV do
  local claim, keeping, size, has_results = unpack(ARGV, at, at + 3)
  local first, following = at + 4, at + 4 + size
  local rule, task = string.match(keeping .. " ?", "^(%S*) (%S+)")
  by_rule[rule] = by_rule[rule] or {}
  local amount, since = end_group(claim, by_rule[rule], { unpack(ARGV, first, following - 1) }, has_results ~= "" and following)
  if amount > 0 then
    count(task, "completed", amount)
    count_time(task, "ran", now - since, amount)
  end
  at = has_results == "" and following or following + size
end

if ended_count > 0 then
  redis.call("ZREM", processing, unpack(ended))
  redis.call("HSET", runs, unpack(done))
  if #kept_results > 0 then redis.call("HSET", results, unpack(kept_results)) end
  local freed = depart(ended, "completed", now)
  finish(completed, "completed", by_rule, now)
  write_tally(now)
  wake(freed)
end
return refused
