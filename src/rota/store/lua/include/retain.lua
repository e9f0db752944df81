-- Finished runs are kept by age and count. Each rule ("age in ms:count") of a state has a list, oldest first, of
-- "run ended_at"; an entry whose run was redriven or deleted meanwhile no longer matches the index and is dropped.
-- What a workflow may still need is under no rule: `let_go` puts it there when the workflow has ended.
-- keys: steps, rules, kept
-- @include forget
-- @include text_of

-- Forgets what a rule no longer keeps, at most `bound` runs; true when there is more to do.
local function trim(index, state, rule, now, bound)
  local list = kept .. ":" .. state .. ":" .. rule
  local age, count = string.match(rule, "^(%d+):(%d+)$")
  -- Entries that no longer match do not count: they must not push out runs that the rule still keeps.
  local length = redis.call("LLEN", list)
  local excess = math.min(math.min(length, redis.call("ZCARD", index)) - count, bound)
  local candidates = excess > 0 and redis.call("LPOP", list, excess) or {}
  while #candidates < bound do
    local run, ended_at = string.match(redis.call("LINDEX", list, 0) or "", "^(%S+) (%d+)$")
    if not run then break end
    local is_over = ended_at + age <= now
    local is_stale = length > tonumber(count) and tonumber(redis.call("ZSCORE", index, run) or -1) ~= tonumber(ended_at)
    if not is_over and not is_stale then break end
    candidates[#candidates + 1] = redis.call("LPOP", list)
  end
  if #candidates == 0 then return false end
  -- An entry is the run's nine characters, and behind a blank when it ended.
  local candidate_runs, gone, gone_count = {}, {}, 0
  for i = 1, #candidates do candidate_runs[i] = string.sub(candidates[i], 1, 9) end
  local scores = redis.call("ZMSCORE", index, unpack(candidate_runs))
  for i = 1, #candidates do
    if scores[i] and scores[i] == string.sub(candidates[i], 11) then
      gone_count = gone_count + 1
      gone[gone_count] = candidate_runs[i]
    end
  end
  if gone_count > 0 then
    redis.call("ZREM", index, unpack(gone))
    forget(gone)
  end
  return #candidates == bound
end

-- Puts runs that have just ended under their rule, and forgets what that pushes out.
local function retain(index, state, rule, ended, now)
  if state ~= "completed" and redis.call("EXISTS", steps) > 0 then
    local free = {}
    for i, is_step in ipairs(redis.call("SMISMEMBER", steps, unpack(ended))) do
      if is_step == 0 then free[#free + 1] = ended[i] end
    end
    ended = free
    if #ended == 0 then return end
  end
  local list, at, entries = kept .. ":" .. state .. ":" .. rule, " " .. text_of(now), {}
  for i = 1, #ended do entries[i] = ended[i] .. at end
  redis.call("RPUSH", list, unpack(entries))
  redis.call("SADD", rules, state .. ":" .. rule)
  trim(index, state, rule, now, #ended + 100)
end
