-- ack_outbox: no change of state
--
-- Acknowledges that an outcome was delivered to these dependents. Once all have it, it leaves the outbox. Harmless
-- when sent again, and after the parent has had another outcome.
--
-- flags: allow-oom
-- KEYS outbox      zset    parent with an undelivered outcome -> when to send
-- KEYS dependents  prefix  `dependents:…`: one run's dependents -> latest outcome delivered
-- KEYS outcomes    hash    parent -> number and kind of its latest outcome
-- ARGV[1] run
-- ARGV[2] number
-- ARGV[3…] dependents
--
-- Returns "more" | "done"

-- @include format_integer
-- @include now_ms
-- @include remove_delivered_parent_from_outbox

local latest, outcome = string.match(redis.call("HGET", K.outcomes, run) or "", "^(%d+) (%a+)")
local key, scored = K.dependents .. ":" .. run, {}
for at = 3, #ARGV do
  -- The parent may have had another outcome since, which these dependents have not received.
  if outcome == "completed" and latest == number then
    redis.call("ZREM", key, ARGV[at])
  else
    scored[#scored + 1], scored[#scored + 2] = number, ARGV[at]
  end
end
if #scored > 0 then redis.call("ZADD", key, "XX", "GT", unpack(scored)) end
if latest and redis.call("ZCOUNT", key, "-inf", "(" .. latest) > 0 then
  redis.call("ZADD", K.outbox, "XX", format_integer(now_ms()), run)
  return "more"
end
remove_delivered_parent_from_outbox(run)
return "done"
