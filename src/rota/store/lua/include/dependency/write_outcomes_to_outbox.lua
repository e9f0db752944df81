-- Writes outcomes of runs to the outbox, for delivery to their dependents, which may be in other hash slots. Also for
-- dependents of follow-ups that were merged into one of them. The number lets a dependent ignore an outcome older
-- than its latest.
-- @include format_integer
-- @include increment_counter
-- @include read_fields_of_run_record
-- @include wake_idle_workers

local function write_outcomes_to_outbox(ended_runs, outcome, now)
  if redis.call("EXISTS", K.has_dependents) == 0 then return end
  local is_added = false
  local function add_outcome(run, ended)
    local number = increment_counter(K.meta, "outcome_number", 1)
    local attempts = attempt_in_record(redis.call("HGET", K.runs, ended)) or "0"
    redis.call("HSET", K.outcomes, run, format_integer(number) .. " " .. outcome .. " " .. attempts)
    -- Retention may remove the result in this step.
    local result = outcome == "completed" and redis.call("HGET", K.results, ended)
    if result then redis.call("HSET", K.outcome_results, run, result) end
    redis.call("ZADD", K.outbox, format_integer(now), run)
    is_added = true
  end
  for i, has_any in ipairs(redis.call("SMISMEMBER", K.has_dependents, unpack(ended_runs))) do
    if has_any == 1 then add_outcome(ended_runs[i], ended_runs[i]) end
  end
  if redis.call("EXISTS", K.merged_from) > 0 then
    for i, others in ipairs(redis.call("HMGET", K.merged_from, unpack(ended_runs))) do
      for other in string.gmatch(others or "", "%S+") do
        if redis.call("SISMEMBER", K.has_dependents, other) > 0 then add_outcome(other, ended_runs[i]) end
      end
    end
  end
  if is_added then wake_idle_workers(1) end
end
