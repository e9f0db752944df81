-- What is kept by task of one queue: this one, or that of its failures. Each task that a queue has ever had a job of has a
-- number; beyond a hundred tasks those that come new share the number of "other".
-- keys: meta

local OTHER, MAX_SLOT = 1, 101

-- Its keys begin as `meta` of the queue does: passed one by one they would be too many names for one script.
local function open_book(meta_key)
  return { prefix = string.sub(meta_key, 1, -5), slot_of = {}, counts = {}, tasks = {} }
end

local book = open_book(meta)

-- Fills `slot_of` of a book for these tasks, and its `last_minute`: the minute in which something was last counted.
local function learn_slots(of_book, tasks)
  local unknown = {}
  for _, task in ipairs(tasks) do
    if not of_book.slot_of[task] then unknown[#unknown + 1] = task end
  end
  if #unknown == 0 and of_book.last_minute then return end
  -- No task has a space in its name.
  local found = redis.call("HMGET", of_book.prefix .. "slots", " minute", unpack(unknown))
  of_book.last_minute = tonumber(found[1] or 0)
  for i, task in ipairs(unknown) do
    local slot = tonumber(found[i + 1] or nil)
    if not slot then
      slot = redis.call("HLEN", of_book.prefix .. "slots") - redis.call("HEXISTS", of_book.prefix .. "slots", " minute") + OTHER + 1
      if slot <= MAX_SLOT then redis.call("HSET", of_book.prefix .. "slots", task, slot) else slot = OTHER end
    end
    of_book.slot_of[task] = slot
  end
end
