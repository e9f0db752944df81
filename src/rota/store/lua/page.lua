-- page: no change of state
--
-- One page of a state index, from where the last one ended. The place of an entry that is gone by now is found by
-- bisection among those that share its score, so pages stay right while jobs come and go, in O(log n).
--
-- flags: no-writes
-- KEYS pending     zset  run -> place
-- KEYS scheduled   zset  run -> due score
-- KEYS blocked     zset  run -> place
-- KEYS processing  zset  run -> lease deadline, ms
-- KEYS completed   zset  run -> time it ended, ms
-- KEYS failed      zset  run -> time it ended, ms
-- KEYS cancelled   zset  run -> time it ended, ms
-- ARGV[1] state       whose index to page through
-- ARGV[2] order       "oldest" or "newest" first
-- ARGV[3] score       of the last entry seen, or ""
-- ARGV[4] last        run of the last entry seen, or ""
-- ARGV[5] limit       how many
-- ARGV[6] since       the first score wanted, or ""
-- ARGV[7] before      the first score that is not wanted any more, or ""
--
-- Returns run, score and description for each entry

-- @include describe

local index = ({
  pending = pending, scheduled = scheduled, blocked = blocked, processing = processing, completed = completed,
  failed = failed, cancelled = cancelled,
})[state]

-- How many entries stand before (score, last), and whether that entry itself is still there.
local function rank_of()
  local low = redis.call("ZCOUNT", index, "-inf", "(" .. score)
  local high = redis.call("ZCOUNT", index, "-inf", score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local found = redis.call("ZRANGE", index, middle, middle)[1]
    if not found then return high, false end
    if found == last then return middle, true end
    if found < last then low = middle + 1 else high = middle end
  end
  return low, false
end

limit = tonumber(limit)
local lowest = since ~= "" and redis.call("ZCOUNT", index, "-inf", "(" .. since) or 0
local total = before ~= "" and redis.call("ZCOUNT", index, "-inf", "(" .. before) or redis.call("ZCARD", index)
-- Ranks of the first and the last entry of the page, in the index.
local from, to
if order == "oldest" then
  from = lowest
  if last ~= "" then
    local rank, is_there = rank_of()
    from = math.max(from, is_there and rank + 1 or rank)
  end
  to = math.min(from + limit, total) - 1
else
  to = total - 1
  if last ~= "" then to = math.min(to, rank_of() - 1) end
  from = math.max(to - limit + 1, lowest)
end
local found = from <= to and redis.call("ZRANGE", index, from, to, "WITHSCORES") or {}
local entries = {}
for i = 1, #found, 2 do
  local at = order == "oldest" and i or #found - i
  entries[i], entries[i + 1] = found[at], found[at + 1]
end
local reply = {}
for i = 1, #entries, 2 do
  reply[#reply + 1] = entries[i]
  reply[#reply + 1] = entries[i + 1]
  reply[#reply + 1] = describe(entries[i], "brief") or ""
end
return reply
