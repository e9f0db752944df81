-- list_runs_of_state: no change of state
--
-- Lists the runs of one state: reads one page of its index, after a given entry. That entry may be gone: its position
-- is found all the same, so pages stay correct while jobs come and go.
--
-- flags: no-writes
-- KEYS pending     zset  run -> score: priority, then the time it became due
-- KEYS scheduled   zset  run -> time it falls due, and its priority
-- KEYS blocked     zset  run -> its pending score once released
-- KEYS processing  zset  run -> deadline of its lease, ms
-- KEYS completed   zset  run -> time it ended, ms
-- KEYS failed      zset  run -> time it ended, ms: the dead letters
-- KEYS cancelled   zset  run -> time it ended, ms
-- ARGV[1] state       state whose index is read
-- ARGV[2] order       "oldest" or "newest" first
-- ARGV[3] score       of the last entry seen, or ""
-- ARGV[4] last        run of the last entry seen, or ""
-- ARGV[5] limit       how many
-- ARGV[6] since       the first score wanted, or ""
-- ARGV[7] before      the first score past the range, or ""
-- ARGV[8] max_arguments  bytes of each job's arguments, or "" for all
--
-- Returns "cut" if the page ended because its jobs are long, else "whole"; then run, score and description for each
-- entry

-- @include find_rank_by_score_and_member
-- @include read_all_data_of_run
-- @include read_job_record

local index = ({
  pending = K.pending, scheduled = K.scheduled, blocked = K.blocked, processing = K.processing,
  completed = K.completed, failed = K.failed, cancelled = K.cancelled,
})[state]

limit = tonumber(limit)
local lowest = since ~= "" and redis.call("ZCOUNT", index, "-inf", "(" .. since) or 0
local total = before ~= "" and redis.call("ZCOUNT", index, "-inf", "(" .. before) or redis.call("ZCARD", index)
-- Ranks of the first and the last entry of the page, in the index.
local from, to
if order == "oldest" then
  from = lowest
  if last ~= "" then
    local rank, is_there = find_rank_by_score_and_member(index, score, last)
    from = math.max(from, is_there and rank + 1 or rank)
  end
  to = math.min(from + limit, total) - 1
else
  to = total - 1
  if last ~= "" then to = math.min(to, find_rank_by_score_and_member(index, score, last) - 1) end
  from = math.max(to - limit + 1, lowest)
end
local found = from <= to and redis.call("ZRANGE", index, from, to, "WITHSCORES") or {}
local entries = {}
for i = 1, #found, 2 do
  local at = order == "oldest" and i or #found - i
  entries[i], entries[i + 1] = found[at], found[at + 1]
end
local reply = { "whole" }
for i = 1, #entries, 2 do
  if has_handled_enough() then
    reply[1] = "cut"
    break
  end
  local run = read_all_data_of_run(entries[i], "brief", tonumber(max_arguments))
  reply[#reply + 1] = entries[i]
  reply[#reply + 1] = entries[i + 1]
  reply[#reply + 1] = run or ""
end
return reply
