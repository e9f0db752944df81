-- Adds an entry to the history of a run, as a line of JSON. The record shows the enqueue, the latest claim and the
-- end, so a job that just runs needs no entry. The last 100 lines are kept.

local function add_history_entry(run, entry)
  local line = cjson.encode(entry)
  local before = redis.call("HGET", K.history, run)
  if before then
    local _, lines = string.gsub(before, "\n", "\n")
    if lines >= 99 then before = string.match(before, "^[^\n]*\n(.*)$") end
    line = before .. "\n" .. line
  end
  redis.call("HSET", K.history, run, line)
end
