-- Counts what happens, by task and time. A script gathers with `count`, and writes all of it with `write_tally` at its end:
-- two commands, however many jobs. `tally` has the sums since ever, 64 numbers of 64 bits for each task, in the order of
-- core/history.py. Once a minute is over, what it added is written down for a day, by whoever counts next; and for a month
-- what an hour added.
-- @include book
-- @include text_of
-- @rare turn_page

local COUNTED = {
  enqueued = 0, started = 1, completed = 2, failed = 3, retried = 4, dead = 5, cancelled = 6, stalled = 7, waited = 8, ran = 9,
}
local WIDTH = 64

local function count_at(task, place, amount, into)
  into = into or book
  local of_task = into.counts[task]
  if not of_task then
    of_task = {}
    into.counts[task] = of_task
    into.tasks[#into.tasks + 1] = task
  end
  of_task[place] = (of_task[place] or 0) + amount
end

local function count(task, what, amount, into)
  count_at(task, COUNTED[what], amount or 1, into)
end

local function write_tally(now, of_book)
  of_book = of_book or book
  if #of_book.tasks == 0 then return end
  learn_slots(of_book, of_book.tasks)
  local this_minute = math.floor(now / 60000)
  -- While a clock that was set back catches up, all goes to the minute that was the latest.
  if this_minute > of_book.last_minute then turn_page(of_book, this_minute) end
  local increments = {}
  for task, of_task in pairs(of_book.counts) do
    local first = (of_book.slot_of[task] - 1) * WIDTH
    for place, amount in pairs(of_task) do
      local at = #increments
      increments[at + 1], increments[at + 2] = "INCRBY", "i64"
      increments[at + 3], increments[at + 4] = "#" .. (first + place), text_of(amount)
    end
  end
  redis.call("BITFIELD", of_book.prefix .. "tally", unpack(increments))
  of_book.counts, of_book.tasks = {}, {}
end
