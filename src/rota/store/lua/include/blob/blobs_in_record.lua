-- Returns the blobs that a job record names, separated by spaces; "" if there are none.
-- @include split_and_join_job_record

local function blobs_in_record(record)
  local _, options = split_job_record(record)
  return split_options(options)[C.OPTION_BLOBS]
end
