-- Everything the store knows of a run, for `core/codec.py` to read: run, record, what happened ("" if nothing yet),
-- index, score in the index, error, progress, result, history, and what blocks it. Nil when there is no such run.
-- keys: jobs, runs, pending, scheduled, blocked, processing, locked, locks, follows, needs, results, errors, history, progress

-- The id of a run, as its record has it.
local function id_of(run)
  local head = string.match(redis.call("HGET", jobs, run) or "", "^(%S+) ")
  if not head then return run end
  return string.sub(head, 1, 1) == "=" and string.sub(head, 2) or run .. "-" .. head
end

-- What keeps a blocked run from starting: "same_id <run>", "lock <holder> <since> <lock>", "after <count> <names…>".
local function obstacle(run)
  local holder = redis.call("HGET", follows, run)
  if holder then return "same_id " .. id_of(holder) .. "@" .. holder end
  local wanted = redis.call("HLEN", needs .. ":" .. run)
  if wanted > 0 then
    return "after " .. wanted .. " " .. table.concat(redis.call("HRANDFIELD", needs .. ":" .. run, 3), " ")
  end
  local lock = redis.call("HGET", locked, run)
  local occupant = lock and redis.call("HGET", locks, lock)
  if not occupant then return "" end
  -- One that was cancelled holds its lock until its handler has stopped.
  local state, since = string.match(redis.call("HGET", runs, occupant) or "", "^(%S+) %S+ %S+ (%S+)")
  if state ~= "processing" and state ~= "cancelled" then since = "-" end
  return "lock " .. id_of(occupant) .. "@" .. occupant .. " " .. since .. " " .. lock
end

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
    redis.call("HGET", progress, run) or "", result, entries, index == "blocked" and obstacle(run) or "",
  }
end
