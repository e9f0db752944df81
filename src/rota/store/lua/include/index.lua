-- What jobs are found by, besides their state. `column` has the task of each run, as one byte: a string for each 1,024 runs,
-- which share the first seven characters of their names; `chunks` says how many of them there are still. Tags, declared
-- fields and errors are terms: a sorted set for each has its runs, and `terms` those of each run that has any.
-- keys: term, terms, groups
-- @include book
-- @include run_name

local CHUNK = 1024

local function offset_of(run)
  local high, low = string.sub(run, 8, 8), string.sub(run, 9, 9)
  return 32 * string.find(DIGITS, high, 1, true) + string.find(DIGITS, low, 1, true) - 33
end

-- Runs with the numbers from `first` on have been made, one of each of these tasks, which have been counted.
local function index_tasks(first, tasks)
  learn_slots(book, book.tasks)
  local at = 1
  while at <= #tasks do
    local offset = (first + at - 1) % CHUNK
    local amount = math.min(#tasks - at + 1, CHUNK - offset)
    local chunk, bytes = string.sub(run_name(first + at - 1), 1, 7), nil
    if #book.tasks == 1 then
      bytes = string.rep(string.char(book.slot_of[tasks[1]]), amount)
    else
      local letters = {}
      for i = 1, amount do letters[i] = string.char(book.slot_of[tasks[at + i - 1]]) end
      bytes = table.concat(letters)
    end
    redis.call("SETRANGE", book.prefix .. "column:" .. chunk, offset, bytes)
    redis.call("HINCRBY", book.prefix .. "chunks", chunk, amount)
    at = at + amount
  end
end

-- One run has been made, in this queue or another.
local function index_task(run, task, in_book)
  in_book = in_book or book
  learn_slots(in_book, { task })
  local chunk = string.sub(run, 1, 7)
  redis.call("SETRANGE", in_book.prefix .. "column:" .. chunk, offset_of(run), string.char(in_book.slot_of[task]))
  redis.call("HINCRBY", in_book.prefix .. "chunks", chunk, 1)
end

-- Calls `act` for each term with the runs that have it, out of runs and their words.
local function each_term(runs, words_of, act)
  local by_word = {}
  for i, run in ipairs(runs) do
    for word in string.gmatch(words_of[i] or "", "%S+") do
      by_word[word] = by_word[word] or {}
      table.insert(by_word[word], run)
    end
  end
  for word, of_word in pairs(by_word) do act(word, of_word) end
end

local function join_term(word, runs)
  local scored = {}
  for i, run in ipairs(runs) do scored[2 * i - 1], scored[2 * i] = 0, run end
  redis.call("ZADD", term .. ":" .. word, unpack(scored))
end

-- A group of dead letters that has none left is described no longer.
local function leave_term(word, runs)
  redis.call("ZREM", term .. ":" .. word, unpack(runs))
  local group = string.match(word, "^group=(.+)$")
  if group and redis.call("EXISTS", term .. ":" .. word) == 0 then redis.call("HDEL", groups, group) end
end

-- Terms of runs that have none yet: words with spaces between, for each.
local function index_new_terms(runs, words_of)
  if #runs == 0 then return end
  local fields = {}
  for i, run in ipairs(runs) do fields[2 * i - 1], fields[2 * i] = run, words_of[i] end
  redis.call("HSET", terms, unpack(fields))
  each_term(runs, words_of, join_term)
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

-- Runs are gone: nothing finds them any more.
local function unindex(gone)
  local by_chunk = {}
  for _, run in ipairs(gone) do
    local chunk = string.sub(run, 1, 7)
    local of_chunk = by_chunk[chunk]
    if not of_chunk then
      of_chunk = { first = run, last = run }
      by_chunk[chunk] = of_chunk
    end
    of_chunk[#of_chunk + 1] = run
    if run < of_chunk.first then of_chunk.first = run elseif run > of_chunk.last then of_chunk.last = run end
  end
  for chunk, of_chunk in pairs(by_chunk) do
    local key = book.prefix .. "column:" .. chunk
    if redis.call("HINCRBY", book.prefix .. "chunks", chunk, -#of_chunk) <= 0 then
      redis.call("HDEL", book.prefix .. "chunks", chunk)
      redis.call("UNLINK", key)
    elseif offset_of(of_chunk.last) - offset_of(of_chunk.first) + 1 == #of_chunk then
      -- They follow each other, as most do.
      redis.call("SETRANGE", key, offset_of(of_chunk.first), string.rep("\0", #of_chunk))
    else
      local cleared = {}
      for _, run in ipairs(of_chunk) do
        local at = #cleared
        cleared[at + 1], cleared[at + 2], cleared[at + 3], cleared[at + 4] = "SET", "u8", "#" .. offset_of(run), 0
      end
      redis.call("BITFIELD", key, unpack(cleared))
    end
  end
  if redis.call("EXISTS", terms) == 0 then return end
  each_term(gone, redis.call("HMGET", terms, unpack(gone)), leave_term)
  redis.call("HDEL", terms, unpack(gone))
end
