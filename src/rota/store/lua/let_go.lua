-- let_go: no change of state
--
-- The workflow of these runs ends, so that they need not be kept for it: each is kept by its own rule from now on.
-- Harmless when sent again.
--
-- flags: allow-oom
-- KEYS failed     zset    run -> time it ended, ms
-- KEYS cancelled  zset    run -> time it ended, ms
-- KEYS steps      set     runs that belong to a workflow, and are kept for it
-- KEYS rules      set     retention lists in use
-- KEYS kept       prefix  of one list per retention rule, `kept:<state>:<rule>`
-- ARGV[1…] two for each: id, run ("" for the newest of the id)
--
-- Returns "done"

-- @include policy
-- @include resolve

for at = 1, #ARGV, 2 do
  local run = resolve(ARGV[at], ARGV[at + 1])
  if run and redis.call("SREM", steps, run) > 0 then
    for state, index in pairs({ failed = failed, cancelled = cancelled }) do
      local ended_at = redis.call("ZSCORE", index, run)
      if ended_at then
        local rules_of = policy(run)
        local rule = state .. ":" .. (state == "failed" and rules_of.failed_rule or rules_of.finished_rule)
        redis.call("RPUSH", kept .. ":" .. rule, run .. " " .. ended_at)
        redis.call("SADD", rules, rule)
      end
    end
  end
end
return "done"
