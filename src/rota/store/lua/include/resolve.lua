-- The run that (id, run) names: that very run, or the newest of the id when run is "". An id that nobody chose
-- begins with its run. Nil when there is no such job: the random part of the id must match too.
-- keys: jobs, ids

local function resolve(id, run)
  if run == "" then
    run = redis.call("HGET", ids, id) or string.match(id, "^(%w%w%w%w%w%w%w%w%w)%-%w%w%w%w%w%w%w%w$")
    if not run then return nil end
  end
  local record = redis.call("HGET", jobs, run)
  if not record then return nil end
  local head = string.match(record, "^(%S+) ")
  if head == "=" .. id or (head and run .. "-" .. head == id) then return run end
  return nil
end
