-- Everything the store knows of a run, for `core/codec.py` to read: run, record, what happened ("" if nothing yet),
-- index, score in the index, error, progress, result and history. Nil when there is no such run.
-- keys: jobs, runs, pending, scheduled, blocked, processing, results, errors, history, progress

local function describe(run, detail)
  local record, line = redis.call("HGET", jobs, run), redis.call("HGET", runs, run)
  if not record then return nil end
  local state = line and string.match(line, "^%S+") or "waiting"
  local index, score = "", ""
  if state == "waiting" or state == "processing" then
    for name, key in pairs({ pending = pending, scheduled = scheduled, blocked = blocked, processing = processing }) do
      local found = redis.call("ZSCORE", key, run)
      if found then index, score = name, found end
    end
  end
  local result, entries = "", ""
  if detail == "full" then
    result = redis.call("HGET", results, run) or ""
    entries = redis.call("HGET", history, run) or ""
  end
  return {
    run, record, line or "", index, score, redis.call("HGET", errors, run) or "",
    redis.call("HGET", progress, run) or "", result, entries,
  }
end
