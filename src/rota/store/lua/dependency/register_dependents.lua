-- register_dependents: no change of state
--
-- Registers dependents with their parents, in the hash slot of the parents, and returns the state of each parent in
-- the same step, so that no outcome falls in between. Harmless when sent again.
--
-- KEYS runs            hash    run -> run record: state, claim, worker, times, counts
-- KEYS stopping        zset    run whose handler has yet to stop -> lease
-- KEYS has_dependents  set     runs that others depend on
-- KEYS dependents      prefix  `dependents:…`: one run's dependents -> latest outcome delivered
-- KEYS outcomes        hash    parent -> number and kind of its latest outcome
-- KEYS results         hash    run -> encoded result, unless it is null
-- ARGV[1…] three for each: parent's id, its run ("" for the newest), dependent as "queue run name", where the name is
--          that of the parent in the dependent's record
--
-- Returns "missing" | "waiting 0 " | state of the parent, number of that outcome, retention for a redrive and result,
-- separated by spaces, for each

-- @include find_run_by_id
-- @include read_fields_of_run_record
-- @include read_job_record
-- @include retention_of_redrivable_run

local function register_one(id, run, dependent)
  local found = find_run_by_id(id, run)
  if not found then return "missing" end
  local line = redis.call("HGET", K.runs, found)
  local state = state_in_record(line)
  local has_ended = state ~= "waiting" and state ~= "processing" and not redis.call("ZSCORE", K.stopping, found)
  if has_ended and state == "completed" then
    local takes_result = string.sub(dependent, -1) == "="
    return "completed 0  " .. (takes_result and redis.call("HGET", K.results, found) or "")
  end
  local number = has_ended and string.match(redis.call("HGET", K.outcomes, found) or "0", "^%d+") or "0"
  redis.call("SADD", K.has_dependents, found)
  redis.call("ZADD", K.dependents .. ":" .. found, "NX", number, dependent)
  if not has_ended then return "waiting 0  " end
  return state .. " " .. number .. " " .. retention_of_redrivable_run(found, state) .. " "
end

local reply = {}
for at = 1, #ARGV, 3 do
  if has_handled_enough() then break end
  reply[#reply + 1] = register_one(ARGV[at], ARGV[at + 1], ARGV[at + 2])
  bytes_handled = bytes_handled + #reply[#reply]
end
return reply
