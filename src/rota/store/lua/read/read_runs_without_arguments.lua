-- read_runs_without_arguments: no change of state
--
-- Reads the records of some runs without their arguments: id, options and task. If they are long, it reads only the
-- first ones.
--
-- flags: no-writes
-- ARGV[1…] runs
--
-- Returns for each that was read its record without the arguments, or "" if there is no such run

-- @include read_job_record

local reply = {}
for i, run in ipairs(ARGV) do
  if has_handled_enough() then break end
  local record = read_job_record(run)
  reply[i] = record and string.match(record, "^[^\n]*\n[^\n]*\n[^\n]*\n") or ""
end
return reply
