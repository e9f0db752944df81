-- Finds the run that (id, run) names: that run, or the newest of the id if run is "". An id that was not chosen
-- begins with its run. Nil for an unknown job: the random part of the id must match. A follow-up that was merged
-- means the run that it was merged into.
-- @include read_job_record

local function find_run_by_id(id, run)
  if run == "" then
    run = redis.call("HGET", K.ids, id) or string.match(id, "^(%w%w%w%w%w%w%w%w%w)%-%w%w%w%w%w%w%w%w$")
    if not run then return nil end
  end
  local record = read_job_record(run)
  if not record then
    run = redis.call("HGET", K.merged_into, run)
    record = run and read_job_record(run)
    if not record then return nil end
  end
  local head = string.match(record, "^(%S+) ")
  if head == "=" .. id or (head and run .. "-" .. head == id) then return run end
  return nil
end
