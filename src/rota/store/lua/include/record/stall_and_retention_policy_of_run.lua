-- Returns the policy of a run about stalls and retention, from its options: how many stalls are forgiven (none if it
-- may run only once), and how long it is kept. A record without options has the defaults of core/job_options.py.
-- @include read_job_record
-- @include split_and_join_job_record

local function policy_of(run)
  local record = read_job_record(run)
  local _, line = split_job_record(record or "")
  local parts = split_options(line or "")
  local ok, options = pcall(cjson.decode, parts[C.OPTION_GENERAL])
  if not ok or type(options) ~= "table" then options = {} end
  local keep = type(options.keep) == "table" and options.keep or {}
  -- A value of another type counts as missing: an error here would fail every claim of the queue.
  local function number(value, default)
    return type(value) == "number" and value >= 0 and value or default
  end
  -- `format_integer` is for numbers that a clock or a counter can reach; these may be larger.
  local function rule(age_s, count)
    return string.format("%.0f:%.0f", age_s * 1000, count)
  end
  return {
    max_stalls = number(tonumber(parts[C.OPTION_MAX_STALLS]), C.MAX_STALLS),
    at_most_once = options.at_most_once == true,
    finished_rule = rule(
      number(keep.finished, C.KEEP_FINISHED_S), number(keep.finished_count, C.KEEP_FINISHED_COUNT)
    ),
    failed_rule = rule(number(keep.failed, C.KEEP_FAILED_S), number(keep.failed_count, C.KEEP_FAILED_COUNT)),
  }
end
