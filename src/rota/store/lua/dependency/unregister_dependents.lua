-- unregister_dependents: no change of state
--
-- Removes what `register_dependents` stored for dependents that were not published, in the hash slot of the parents.
-- Harmless when sent again.
--
-- flags: allow-oom
-- KEYS has_dependents   set     runs that others depend on
-- KEYS dependents       prefix  `dependents:…`: one run's dependents -> latest outcome delivered
-- KEYS outcomes         hash    parent -> number and kind of its latest outcome
-- KEYS outcome_results  hash    parent with an undelivered outcome -> its result
-- KEYS outbox           zset    parent with an undelivered outcome -> when to send
-- ARGV[1…] three for each, as for `register_dependents`
--
-- Returns "unregistered"

-- @include find_run_by_id

for at = 1, #ARGV, 3 do
  local found = find_run_by_id(ARGV[at], ARGV[at + 1])
  if found then
    redis.call("ZREM", K.dependents .. ":" .. found, ARGV[at + 2])
    if redis.call("EXISTS", K.dependents .. ":" .. found) == 0 then
      redis.call("SREM", K.has_dependents, found)
      redis.call("HDEL", K.outcomes, found)
      redis.call("HDEL", K.outcome_results, found)
      redis.call("ZREM", K.outbox, found)
    end
  end
end
return "unregistered"
