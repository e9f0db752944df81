-- read_runs: no change of state
--
-- Reads everything that is stored about some runs, as one snapshot. If they are long, it reads only the first ones.
--
-- flags: no-writes
-- ARGV[1] detail      "full" adds result and history, "history" only the latter, "brief" none
-- ARGV[2] max_arguments  bytes of each job's arguments, or "" for all
-- ARGV[3…] two for each job: id ("" where a run is given), run ("" for the newest of the id)
--
-- Returns the server's time, then for each job that was read "" if it is missing, or its description

-- @include find_run_by_id
-- @include format_integer
-- @include now_ms
-- @include read_all_data_of_run
-- @include read_job_record

local reply = { format_integer(now_ms()) }
for at = 3, #ARGV, 2 do
  if has_handled_enough() then break end
  local run = ARGV[at + 1]
  if ARGV[at] ~= "" then run = find_run_by_id(ARGV[at], run) end
  reply[#reply + 1] = run and read_all_data_of_run(run, detail, tonumber(max_arguments)) or ""
end
return reply
