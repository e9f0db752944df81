-- What the server must know of a run's options: the stalls it is forgiven, whether it may run only once, and how
-- long it is kept. A record without options stands for the defaults of core/job.py.
-- keys: jobs
-- @include parts

local function policy(run)
  local record = redis.call("HGET", jobs, run)
  local _, line = split_record(record or "")
  local parts = split_options(line or "")
  local ok, options = pcall(cjson.decode, parts[1])
  if not ok or type(options) ~= "table" then options = {} end
  local keep = type(options.keep) == "table" and options.keep or {}
  -- A value of another kind counts as none given: an error here would fail every claim of the queue.
  local function number(value, default)
    return type(value) == "number" and value >= 0 and value or default
  end
  -- However large: `text_of` is for numbers that a clock or a counter can reach.
  local function rule(age_s, count)
    return string.format("%.0f:%.0f", age_s * 1000, count)
  end
  return {
    max_stalls = number(tonumber(parts[4]), 3),
    at_most_once = options.at_most_once == true,
    finished_rule = rule(number(keep.finished, 3600), number(keep.finished_count, 10000)),
    failed_rule = rule(number(keep.failed, 2592000), number(keep.failed_count, 100000)),
  }
end
