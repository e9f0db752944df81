-- What jobs are found by, besides their state and terms: `column` has the task of each run, as one byte, a string for each
-- 1,024 runs, which share the first seven characters of their names; `chunks` says how many of them there are still.
-- @include book
-- @include run_name

local CHUNK = 1024

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
