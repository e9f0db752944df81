-- Checks that a run is in the index of its state and in no other. Returns how many runs became pending.
-- @include format_integer
-- @include now_ms
-- @include put_back_waiting_run
-- @include read_job_record
-- @include read_run_with_indexes
-- @include remove_waiting_run_from_indexes
-- @include report_index_problem
-- @include stall_and_retention_policy_of_run
-- @include stop_retaining_run

local ENDED = { completed = true, failed = true, cancelled = true }

local function remove_from_state_index(run, name)
  if ENDED[name] then return stop_retaining_run(run, name, STATE_INDEXES[name]) end
  redis.call("ZREM", STATE_INDEXES[name], run)
end

-- The list of its rule may still have it: it would be there twice.
local function retain_again(run, f, ended_at)
  if f.state ~= "completed" and redis.call("SISMEMBER", K.steps, run) == 1 then return end
  local policy = policy_of(run)
  local rule = f.state .. ":" .. (f.state == "failed" and policy.failed_rule or policy.finished_rule)
  local list, entry = K.kept .. ":" .. rule, run .. " " .. ended_at
  bytes_handled = bytes_handled + redis.call("LLEN", list) * #entry
  redis.call("LREM", list, 0, entry)
  redis.call("RPUSH", list, entry)
  redis.call("SADD", K.retention_rules, rule)
end

local function put_into_state_index(run, f)
  if f.state == "waiting" then return put_back_waiting_run(run, f) end
  local score = now_ms() + lease_ms
  if ENDED[f.state] then score = tonumber(f.r.ended_at) or now_ms() end
  redis.call("ZADD", STATE_INDEXES[f.state], format_integer(score), run)
  if ENDED[f.state] then retain_again(run, f, format_integer(score)) end
  return 0
end

local function check_state_index(run, f)
  local present, freed = 0, 0
  for name in pairs(f.scores) do
    local is_right = name == f.state or (f.state == "waiting" and WAITING[name])
    if is_right then
      present = present + 1
    elseif found_problem(run, name, "it is " .. f.state .. ", and also in this index") then
      remove_from_state_index(run, name)
    end
  end
  local index = f.state == "waiting" and "pending" or f.state
  if present == 0 and found_problem(run, index, "it is " .. f.state .. ", and in no index") then
    freed = put_into_state_index(run, f)
  elseif present > 1 and found_problem(run, index, "it waits in several indexes") then
    freed = remove_waiting_run_from_indexes(run)
    freed = freed + put_back_waiting_run(run, f)
  end
  return freed
end
