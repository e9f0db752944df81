-- Adds one entry to a run's history, as a line of JSON. The record itself shows the enqueue, the latest claim and
-- the end, so a job that just runs needs no entry. The last 100 lines are kept.
-- keys: history

local function note(run, entry)
  local line = cjson.encode(entry)
  local before = redis.call("HGET", history, run)
  if before then
    local _, lines = string.gsub(before, "\n", "\n")
    if lines >= 99 then before = string.match(before, "^[^\n]*\n(.*)$") end
    line = before .. "\n" .. line
  end
  redis.call("HSET", history, run, line)
end
