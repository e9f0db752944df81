-- Checks the records of a run. A job record that cannot be read stays: the worker that claims it makes it a dead
-- letter. A lost or damaged run record is written again for the state that the indexes show; a run that was
-- processing keeps its lease, which no worker can renew, and so returns as after the death of a worker.
-- @include format_integer
-- @include parse_and_format_run_record
-- @include put_back_waiting_run
-- @include report_index_problem

local function check_run_record(run, f)
  if not f.head or not string.find(f.head, "^%S+ %d+$") then
    found_loss(run, "jobs", "its record cannot be read; the worker that claims it makes it a dead letter")
  end
  if f.has_record or (not f.line and f.state == "waiting") then return end
  if not found_problem(run, "runs", "its run record is " .. (f.line and "damaged" or "missing")) then return end
  local r = new_run_record(f.state, "0")
  if f.state == "waiting" then
    r.score = format_integer(score_of_waiting_run(f))
  else
    r.attempt = 1
    if f.state ~= "processing" then r.ended_at, r.reason = f.scores[f.state], "repaired: its run record was lost" end
  end
  redis.call("HSET", K.runs, run, format_run_record(r))
  f.r, f.has_record, f.line = r, true, format_run_record(r)
end
