-- Reads a job record, and counts its bytes. Records may be long, so loops over runs stop when the call has handled
-- `C.CALL_BYTES`, and leave the rest to another call.

local bytes_handled = 0

local function read_job_record(run)
  local record = redis.call("HGET", K.jobs, run)
  if record then bytes_handled = bytes_handled + #record end
  return record
end

-- Counts a record that is read later.
local function count_job_record(run)
  bytes_handled = bytes_handled + redis.call("HSTRLEN", K.jobs, run)
end

local function has_handled_enough()
  return bytes_handled >= C.CALL_BYTES
end
