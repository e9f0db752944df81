-- Checks that a blocked run is blocked by something: the run before it, its parents, or its lock. Else nothing would
-- ever release it. Parents that were lost are read from its job record again; Python then asks for their outcomes.
-- Returns how many runs became pending.
-- @include find_and_detach_follow_up
-- @include put_back_waiting_run
-- @include remove_waiting_run_from_indexes
-- @include report_index_problem
-- @include write_parents_of_run

-- Writes lost parents again. False for a step of a workflow: what it waits for is not all in its record.
local function restore_parents(run, f)
  local names = f.parts[C.OPTION_PARENTS]
  if names == "" or redis.call("SISMEMBER", K.steps, run) == 1 then return false end
  write_parents_of_run(run, names, C.MAX_PAYLOAD)
  return true
end

local function check_follow_up(run, f)
  local follows = redis.call("HGET", K.follows, run)
  if follows and why_blocked(run) ~= "same_id" then
    local text = "it waits for " .. follows .. ", which is not processing"
    if found_problem(run, "follow_ups", text) then
      detach_follow_up(run)
      redis.call("HDEL", K.follows, run)
    end
  end
  local following = follow_up_of(run)
  if not following or redis.call("HGET", K.follows, following) == run then return end
  if not found_problem(run, "follow_ups", "its follow-up " .. following .. " does not refer to it") then return end
  if redis.call("ZSCORE", K.blocked, following) then
    redis.call("HSET", K.follows, following, run)
  else
    redis.call("HDEL", K.follow_ups, run)
  end
end

local function check_what_blocks_run(run, f)
  check_follow_up(run, f)
  if f.state ~= "waiting" then return 0 end
  local is_blocked, why = redis.call("ZSCORE", K.blocked, run), why_blocked(run)
  local is_listed = redis.call("SISMEMBER", K.has_parents, run) == 1
  if why == "parents" and not is_listed
    and found_problem(run, "has_parents", "it has parents, and is not listed") then
    redis.call("SADD", K.has_parents, run)
  end
  if not is_blocked then
    if why and found_problem(run, "blocked", "it waits for others, and may start") then
      remove_waiting_run_from_indexes(run)
      put_back_waiting_run(run, f)
    end
    return 0
  end
  if why then return 0 end
  if is_listed then
    if mode == "repair" and not restore_parents(run, f) then
      found_loss(run, "parents", "what it waits for is lost; cancel the workflow, or the job")
    elseif mode == "check" or redis.call("EXISTS", K.parents .. ":" .. run) == 1 then
      found_problem(run, "parents", "it is blocked, and the list of its parents is lost")
      return 0
    end
    return 0
  end
  if f.lock == "" and found_problem(run, "blocked", "it is blocked, and waits for nothing") then
    redis.call("ZREM", K.blocked, run)
    return put_back_waiting_run(run, f)
  end
  return 0
end
