-- The task of a run goes into the column of its chunk; see `column`, which does that for many.
-- @include book
-- @include offset_of

-- One run has been made, in this queue or another.
local function index_task(run, task, in_book)
  in_book = in_book or book
  learn_slots(in_book, { task })
  local chunk = string.sub(run, 1, 7)
  redis.call("SETRANGE", in_book.prefix .. "column:" .. chunk, offset_of(run), string.char(in_book.slot_of[task]))
  redis.call("HINCRBY", in_book.prefix .. "chunks", chunk, 1)
end
