-- Reads all data of a run, for `core/job_record_codec.py` to read: run, job record, run record ("" before
-- the first claim), index, score in the index, error, progress, result, history, and what blocks it. Nil for an
-- unknown run. Arguments are cut to `max_arguments` bytes, if given: the record is read as a whole all the same, so
-- its full length counts towards the bytes of the call.
-- @include paused_task_of_run
-- @include read_fields_of_run_record
-- @include read_job_record

-- Returns the id of a run, from its job record.
local function id_of(run)
  local head = string.match(redis.call("HGET", K.jobs, run) or "", "^(%S+) ")
  if not head then return run end
  return string.sub(head, 1, 1) == "=" and string.sub(head, 2) or run .. "-" .. head
end

-- Returns what blocks a run: "same_id <run>", "lock <holder> <since> <lock>", "after <count> <names…>",
-- "task_paused <task>".
local function blocked_by(run)
  local holder = redis.call("HGET", K.follows, run)
  if holder then return "same_id " .. id_of(holder) .. "@" .. holder end
  local wanted = redis.call("HLEN", K.parents .. ":" .. run)
  if wanted > 0 then
    return "after " .. wanted .. " " .. table.concat(redis.call("HRANDFIELD", K.parents .. ":" .. run, 3), " ")
  end
  local paused_task = paused_task_of(run)
  if paused_task then return "task_paused " .. paused_task end
  local lock = redis.call("HGET", K.locked, run)
  local occupant = lock and redis.call("HGET", K.locks, lock)
  if not occupant then return "" end
  local line = redis.call("HGET", K.runs, occupant)
  local state, since = state_in_record(line), claimed_at_in_record(line)
  -- A cancelled run holds its lock until its handler has stopped.
  if not since or (state ~= "processing" and state ~= "cancelled") then since = "-" end
  return "lock " .. id_of(occupant) .. "@" .. occupant .. " " .. since .. " " .. lock
end

-- Returns a job record with its arguments, the fourth line, cut to some bytes.
local function cut_arguments(record, max_arguments)
  local _, head = string.find(record, "^[^\n]*\n[^\n]*\n[^\n]*\n")
  return head and string.sub(record, 1, head + max_arguments) or record
end

local function read_all_data_of_run(run, detail, max_arguments)
  local record, line = read_job_record(run), redis.call("HGET", K.runs, run)
  if not record then return nil end
  if max_arguments then record = cut_arguments(record, max_arguments) end
  local state = state_in_record(line)
  local index, score = "", ""
  if state == "waiting" or state == "processing" then
    local indexes = { pending = K.pending, scheduled = K.scheduled, blocked = K.blocked, processing = K.processing }
    for name, key in pairs(indexes) do
      local found = redis.call("ZSCORE", key, run)
      if found then index, score = name, found end
    end
  end
  local result, entries = "", ""
  if detail == "full" then result = redis.call("HGET", K.results, run) or "" end
  if detail ~= "brief" then entries = redis.call("HGET", K.history, run) or "" end
  local failure = redis.call("HGET", K.errors, run) or ""
  bytes_handled = bytes_handled + #result + #entries + #failure
  return {
    run, record, line or "", index, score, failure, redis.call("HGET", K.progress, run) or "", result, entries,
    index == "blocked" and blocked_by(run) or "",
  }
end
