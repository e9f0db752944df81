-- The run that (id, run) names: that very run, or the newest of the id when run is "". An id that nobody chose
-- begins with its run. Nil when there is no such job: the random part of the id must match too. A follow-up that was
-- merged into the run before it means that run.
-- keys: jobs, ids, merged

local function resolve(id, run)
  if run == "" then
    run = redis.call("HGET", ids, id) or string.match(id, "^(%w%w%w%w%w%w%w%w%w)%-%w%w%w%w%w%w%w%w$")
    if not run then return nil end
  end
  local record = redis.call("HGET", jobs, run)
  if not record then
    run = redis.call("HGET", merged, run)
    record = run and redis.call("HGET", jobs, run)
    if not record then return nil end
  end
  local head = string.match(record, "^(%S+) ")
  if head == "=" .. id or (head and run .. "-" .. head == id) then return run end
  return nil
end
