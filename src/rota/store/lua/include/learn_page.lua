-- A task of which nothing is known in its queue, or a minute in which nothing was counted yet: gives the task its number,
-- which it says, and begins a new page.
-- @include book
-- @include turn_page

local function learn_page(task, this_minute)
  learn_slots(book, { task })
  if this_minute > book.last_minute then turn_page(book, this_minute) end
  return book.slot_of[task]
end
