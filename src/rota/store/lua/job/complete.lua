-- complete: processing -> completed
--
-- Ends runs whose attempts succeeded, and gives up their leases. A report whose claim lost its lease changes nothing.
-- Sent again with the same claim, it returns "already".
--
-- flags: allow-oom
-- KEYS runs        hash  run -> run record: state, claim, worker, times, counts
-- KEYS processing  zset  run -> deadline of its lease, ms
-- KEYS results     hash  run -> encoded result, unless it is null
-- KEYS completed   zset  run -> time it ended, ms
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3…] groups of runs with the same claim and retention: claim, retention rule and task, count, "results" or "",
--          then the runs, then as many encoded results if there are any ("" for null)
--
-- Returns index and "already" | "missing" | "cancelled" | "lease_lost" for each run that was refused

-- @include count_duration_by_task
-- @include format_integer
-- @include gather_and_write_counts
-- @include index_retain_and_announce_finished_runs
-- @include now_ms
-- @include parse_and_format_run_record
-- @include read_fields_of_run_record
-- @include release_next_runs_if_any_wait
-- @include wake_idle_workers
-- @rare refuse_report_and_release_stopped_run

local now = now_ms()
local refused, index, ended_count, ended_at = {}, 0, 0, format_integer(now) .. " "
local done, ended, by_rule, kept_results, is_done, done_line_of = {}, {}, {}, {}, {}, {}

-- Only state and end of the record change: "processing … - " becomes "completed … 1763280000000 ".
local function completed_line(line)
  local unchanged = string.match(line, "^processing(.* )%S+ $") or string.sub(line, #"processing" + 1, -#"- " - 1)
  return "completed" .. unchanged .. ended_at
end

-- Ends the runs of a group that its claim owns. Returns how many, and since when they ran: one claim, one time.
local function end_group(claim, of_rule, asked, first_result)
  local lines = redis.call("HMGET", K.runs, unpack(asked))
  local ended_before, since, of_rule_count = ended_count, nil, #of_rule
  for i = 1, #asked do
    local run, line = asked[i], lines[i]
    if is_done[run] then
      refused[#refused + 1], refused[#refused + 2] = format_integer(index), "already"
    elseif is_claim(line, "processing", claim) then
      is_done[run] = true
      local done_line = done_line_of[line]
      if not done_line then
        -- Runs that became due and were claimed together have the same record.
        done_line = completed_line(line)
        done_line_of[line] = done_line
      end
      since = since or tonumber(claimed_at_in_record(line))
      ended_count, of_rule_count = ended_count + 1, of_rule_count + 1
      done[2 * ended_count - 1], done[2 * ended_count] = run, done_line
      ended[ended_count], of_rule[of_rule_count] = run, run
      local result = first_result and ARGV[first_result + i - 1] or ""
      if result ~= "" then kept_results[#kept_results + 1], kept_results[#kept_results + 2] = run, result end
    else
      refuse_report_and_release_stopped_run(refused, index, run, line, claim, now)
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
  local asked = { unpack(ARGV, first, following - 1) }
  local amount, since = end_group(claim, by_rule[rule], asked, has_results ~= "" and following)
  if amount > 0 then
    count(task, "completed", amount)
    if since then count_duration_by_task(task, "ran", now - since, amount) end
  end
  at = has_results == "" and following or following + size
end

if ended_count > 0 then
  redis.call("ZREM", K.processing, unpack(ended))
  redis.call("HSET", K.runs, unpack(done))
  if #kept_results > 0 then redis.call("HSET", K.results, unpack(kept_results)) end
  local freed = release_next_runs_if_any_wait(ended, "completed", now)
  index_retain_and_announce_finished_runs(K.completed, "completed", by_rule, now)
  write_counters(now)
  wake_idle_workers(freed)
end
return refused
