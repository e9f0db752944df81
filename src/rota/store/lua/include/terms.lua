-- Tags, declared fields and errors are terms, by which jobs are found: a sorted set for each has its runs, and `terms`
-- those of each run that has any.
-- keys: term, terms, groups

-- Calls `act` for each term with the runs that have it, out of runs and their words.
local function each_term(of_runs, words_of, act)
  local by_word = {}
  for i, run in ipairs(of_runs) do
    for word in string.gmatch(words_of[i] or "", "%S+") do
      by_word[word] = by_word[word] or {}
      table.insert(by_word[word], run)
    end
  end
  for word, of_word in pairs(by_word) do act(word, of_word) end
end

local function join_term(word, joining)
  local scored = {}
  for i, run in ipairs(joining) do scored[2 * i - 1], scored[2 * i] = 0, run end
  redis.call("ZADD", term .. ":" .. word, unpack(scored))
end

-- A group of dead letters that has none left is described no longer.
local function leave_term(word, leaving)
  redis.call("ZREM", term .. ":" .. word, unpack(leaving))
  local group = string.match(word, "^group=(.+)$")
  if group and redis.call("EXISTS", term .. ":" .. word) == 0 then redis.call("HDEL", groups, group) end
end

-- More terms of one run.
local function index_terms(run, words)
  local before = redis.call("HGET", terms, run)
  redis.call("HSET", terms, run, before and before .. " " .. words or words)
  each_term({ run }, { words }, join_term)
end

-- The terms of a run that `is_over` says so of are its no longer.
local function drop_terms(run, is_over)
  local words = redis.call("HGET", terms, run)
  if not words then return end
  local left = {}
  for word in string.gmatch(words, "%S+") do
    if is_over(word) then leave_term(word, { run }) else left[#left + 1] = word end
  end
  if #left > 0 then redis.call("HSET", terms, run, table.concat(left, " ")) else redis.call("HDEL", terms, run) end
end
