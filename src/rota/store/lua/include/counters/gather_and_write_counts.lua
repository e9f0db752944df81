-- Gathers counts of events by task, and writes them. A script gathers with `count` and writes all with
-- `write_counters` at its end: two commands, however many jobs. `counters` has the totals, 64 numbers of 64 bits for
-- each task, in the order of core/metric_series.py. When a minute is over, the next call that counts stores what it
-- added, for a day; and for a month what an hour added.
-- @include assign_task_numbers
-- @include format_integer
-- @rare repair_last_minute
-- @rare store_counts_of_last_minute_and_hour

local COUNTED = {
  enqueued = 0, started = 1, completed = 2, failed = 3, retried = 4, dead = 5, cancelled = 6, stalled = 7, waited = 8,
  ran = 9,
}
local WIDTH = 64

local function count_at(task, position, amount, into)
  into = into or queue_counters
  local of_task = into.counts[task]
  if not of_task then
    of_task = {}
    into.counts[task] = of_task
    into.tasks[#into.tasks + 1] = task
  end
  of_task[position] = (of_task[position] or 0) + amount
end

local function count(task, what, amount, into)
  count_at(task, COUNTED[what], amount or 1, into)
end

local function write_counters(now, counters)
  counters = counters or queue_counters
  if #counters.tasks == 0 then return end
  load_task_numbers(counters, counters.tasks)
  local this_minute = math.floor(now / 60000)
  -- After a clock was set back, counts go to the latest minute until the clock has caught up. A minute that is more
  -- than a day ahead is damaged.
  if counters.last_minute > this_minute + 1440 then
    counters.last_minute = repair_last_minute(counters.prefix, format_integer(counters.last_minute))
  end
  if this_minute > counters.last_minute then store_counts_of_last_minute_and_hour(counters, this_minute) end
  local increments = {}
  for task, of_task in pairs(counters.counts) do
    local first = (counters.number_of[task] - 1) * WIDTH
    for position, amount in pairs(of_task) do
      local at = #increments
      increments[at + 1], increments[at + 2] = "INCRBY", "i64"
      increments[at + 3], increments[at + 4] = "#" .. (first + position), format_integer(amount)
    end
  end
  redis.call("BITFIELD", counters.prefix .. "counters", unpack(increments))
  counters.counts, counters.tasks = {}, {}
end
