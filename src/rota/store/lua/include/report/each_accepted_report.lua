-- Calls `accept(run, line, ...)` for each report whose claim owns its run, with the run record as `line` and the rest
-- of the report; refuses the others, and returns their index and reason: "later" once the call has handled enough
-- bytes. Reports are in ARGV from 3 on, `width` words each, of which the first two are run and claim.
-- @include format_integer
-- @include parse_and_format_run_record
-- @include read_job_record
-- @include refuse_report_and_release_stopped_run

local FIRST_REPORT = 3

local function each_accepted_report(width, now, accept)
  local refused, accepted = {}, {}
  for at = FIRST_REPORT, #ARGV, width do
    local run, claim = ARGV[at], ARGV[at + 1]
    local line, index = redis.call("HGET", K.runs, run), (at - FIRST_REPORT) / width
    if not is_claim(line, "processing", claim) then
      refuse_report_and_release_stopped_run(refused, index, run, line, claim, now)
    elseif accepted[run] then
      -- A script may write the records after it has walked all reports.
      refused[#refused + 1], refused[#refused + 2] = format_integer(index), "already"
    elseif has_handled_enough() then
      refused[#refused + 1], refused[#refused + 2] = format_integer(index), "later"
    else
      accepted[run] = true
      accept(run, line, unpack(ARGV, at + 2, at + width - 1))
    end
  end
  return refused
end
