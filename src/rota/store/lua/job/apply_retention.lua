-- apply_retention: completed | failed | cancelled -> (none)
--
-- Applies retention: removes finished runs that are no longer retained, where no later end pushes them out; also
-- prepared runs that were never published, and heartbeats of workers that are gone. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS completed        zset    run -> time it ended, ms
-- KEYS failed           zset    run -> time it ended, ms: the dead letters
-- KEYS cancelled        zset    run -> time it ended, ms
-- KEYS retention_rules  set     retention lists in use
-- KEYS kept             prefix  `kept:…`: finished runs of one retention rule, oldest first
-- KEYS heartbeats       hash    worker -> its last heartbeat, ms
-- KEYS prepared         zset    run that is not yet visible -> since, ms
-- ARGV[1] bound       how many runs it may remove
-- ARGV[2] cursor      where to continue among the retention rules; "0" at first
--
-- Returns the cursor of the next call | "done"

-- @include format_integer
-- @include now_ms
-- @include remove_prepared_run
-- @include retain_finished_runs_by_age_and_count

local now, left = now_ms(), tonumber(bound)
local index_of = { completed = K.completed, failed = K.failed, cancelled = K.cancelled }
-- The rules of a queue are few, as a rule; but each job may have its own.
local following, rules = unpack(redis.call("SSCAN", K.retention_rules, cursor, "COUNT", 100))
for _, name in ipairs(rules) do
  local state, rule = string.match(name, "^(%a+):(.*)$")
  local is_valid = index_of[state] and string.find(rule, "^%d+:%d+$")
  if is_valid then left = left - trim_retained(index_of[state], state, rule, now, left) end
  if left <= 0 then return cursor end
  local is_used = is_valid and redis.call("EXISTS", K.kept .. ":" .. name) > 0
  if not is_used then redis.call("SREM", K.retention_rules, name) end
end
-- Their clients died before they published these.
local abandoned = redis.call("ZRANGE", K.prepared, "-inf", format_integer(now - 60000), "BYSCORE", "LIMIT", 0, left)
for _, run in ipairs(abandoned) do remove_prepared_run(run) end
if #abandoned == left then return following end
-- A worker that was killed leaves its last heartbeat behind; it is removed after an hour.
local heartbeats = redis.call("HGETALL", K.heartbeats)
for i = 1, #heartbeats, 2 do
  if now - (tonumber(heartbeats[i + 1]) or 0) > 3600000 then redis.call("HDEL", K.heartbeats, heartbeats[i]) end
end
return following == "0" and "done" or following
