-- Counts a duration (waited or ran) by task: its sum, and a histogram.
-- @include gather_and_write_counts

local HISTOGRAM, LAST_BUCKET = { waited = 10, ran = 37 }, 26

-- Bucket n is for times from 2^(n-1) ms up to less than 2^n ms.
local function bucket_of(ms)
  local _, exponent = math.frexp(ms)
  return math.min(exponent, LAST_BUCKET)
end

-- Counts `amount` durations of `ms` each; `what` is "waited" or "ran".
local function count_duration_by_task(task, what, ms, amount)
  ms = math.max(0, ms)
  count_at(task, COUNTED[what], ms * amount)
  count_at(task, HISTOGRAM[what] + bucket_of(ms), amount)
end
