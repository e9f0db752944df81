-- What jobs are found by, besides their state and terms: `column` has the task of each run, as one byte, a string for each
-- 1,024 runs, which share the first seven characters of their names; `chunks` says how many of them there are still.
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
