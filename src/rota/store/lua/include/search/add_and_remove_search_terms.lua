-- Adds search terms to runs and removes them. Terms are tags, declared fields and errors. A sorted set for each term
-- has its runs, and `terms` has the terms of each run.

-- Calls `act` for each term, with those of the runs that have it.
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
  redis.call("ZADD", K.term .. ":" .. word, unpack(scored))
end

-- The description of a group is removed with its last dead letter.
local function leave_term(word, leaving)
  redis.call("ZREM", K.term .. ":" .. word, unpack(leaving))
  local group = string.match(word, "^group=(.+)$")
  if group and redis.call("EXISTS", K.term .. ":" .. word) == 0 then redis.call("HDEL", K.error_groups, group) end
end

-- Adds terms to one run.
local function index_terms(run, words)
  local before = redis.call("HGET", K.terms, run)
  redis.call("HSET", K.terms, run, before and before .. " " .. words or words)
  each_term({ run }, { words }, join_term)
end

-- Removes the terms of a run for which `is_over` returns true.
local function drop_terms(run, is_over)
  local words = redis.call("HGET", K.terms, run)
  if not words then return end
  local left = {}
  for word in string.gmatch(words, "%S+") do
    if is_over(word) then leave_term(word, { run }) else left[#left + 1] = word end
  end
  if #left > 0 then
    redis.call("HSET", K.terms, run, table.concat(left, " "))
  else
    redis.call("HDEL", K.terms, run)
  end
end
