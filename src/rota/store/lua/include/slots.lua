-- Each task that a queue has ever had a job of has a number, for all that is kept by task. Beyond a hundred tasks those
-- that come new share the number of "other". `book` is what is kept by task of one queue: this one, or its failures.

local OTHER, MAX_SLOT = 1, 101

-- Fills `book.slot_of` for these tasks, and `book.last_minute`: the minute in which something was last counted.
local function learn_slots(book, tasks)
  local unknown = {}
  for _, task in ipairs(tasks) do
    if not book.slot_of[task] then unknown[#unknown + 1] = task end
  end
  if #unknown == 0 and book.last_minute then return end
  -- No task has a space in its name.
  local found = redis.call("HMGET", book.slots, " minute", unpack(unknown))
  book.last_minute = tonumber(found[1] or 0)
  for i, task in ipairs(unknown) do
    local slot = tonumber(found[i + 1] or nil)
    if not slot then
      slot = redis.call("HLEN", book.slots) - redis.call("HEXISTS", book.slots, " minute") + OTHER + 1
      if slot <= MAX_SLOT then redis.call("HSET", book.slots, task, slot) else slot = OTHER end
    end
    book.slot_of[task] = slot
  end
end
