-- Retains finished runs by age and count. Each retention rule ("age in ms:count") of a state has a list of "run
-- ended_at", oldest first; `stop_retaining_run` removes the entry of a run that is redriven or deleted.
-- Runs of an unfinished workflow are under no rule: `put_ended_workflow_runs_under_retention` adds them later.
-- @include format_integer
-- @include remove_runs_except_from_state_indexes

local RUN_LENGTH = 9

-- Removes at most `bound` runs that a rule no longer retains. Returns how many entries of its list it has removed: if
-- that is the bound, there may be more to do.
local function trim_retained(index, state, rule, now, bound)
  local list = K.kept .. ":" .. state .. ":" .. rule
  local age, count = string.match(rule, "^(%d+):(%d+)$")
  local excess = math.min(redis.call("LLEN", list) - count, bound)
  local candidates = excess > 0 and redis.call("LPOP", list, excess) or {}
  while #candidates < bound do
    local entry = redis.call("LINDEX", list, 0)
    if not entry then break end
    -- A damaged entry is dropped.
    local ended_at = string.match(entry, "^%S+ (%d+)$")
    if ended_at and ended_at + age > now then break end
    candidates[#candidates + 1] = redis.call("LPOP", list)
  end
  if #candidates == 0 then return 0 end
  local candidate_runs, gone, gone_count = {}, {}, 0
  for i = 1, #candidates do candidate_runs[i] = string.sub(candidates[i], 1, RUN_LENGTH) end
  local scores = redis.call("ZMSCORE", index, unpack(candidate_runs))
  for i = 1, #candidates do
    if scores[i] and scores[i] == string.sub(candidates[i], RUN_LENGTH + 2) then
      gone_count = gone_count + 1
      gone[gone_count] = candidate_runs[i]
    end
  end
  if gone_count > 0 then
    redis.call("ZREM", index, unpack(gone))
    remove_runs_except_from_state_indexes(gone)
  end
  return #candidates
end

-- Adds runs that have just ended to their rule, and removes those that they push out: as many as have ended, and up
-- to `spare` more. Returns what is left of `spare`, for the other rules of the call.
local function retain_runs(index, state, rule, ended, now, spare)
  if state ~= "completed" and redis.call("EXISTS", K.steps) > 0 then
    local free = {}
    for i, is_step in ipairs(redis.call("SMISMEMBER", K.steps, unpack(ended))) do
      if is_step == 0 then free[#free + 1] = ended[i] end
    end
    ended = free
    if #ended == 0 then return spare end
  end
  local list, at, entries = K.kept .. ":" .. state .. ":" .. rule, " " .. format_integer(now), {}
  for i = 1, #ended do entries[i] = ended[i] .. at end
  redis.call("RPUSH", list, unpack(entries))
  redis.call("SADD", K.retention_rules, state .. ":" .. rule)
  local removed = trim_retained(index, state, rule, now, #ended + spare)
  return spare - math.max(0, removed - #ended)
end
