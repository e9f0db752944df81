-- settle: no change of state
--
-- Says that news has been delivered to these dependents. When all have it, it leaves the outbox. Harmless when sent
-- again, and after the parent has come up with other news.
--
-- flags: allow-oom
-- KEYS outbox   zset    parent with news -> when to tell
-- KEYS heirs    prefix  of one zset per parent, `heirs:<run>`
-- KEYS endings  hash    parent -> number and kind of its latest news
-- ARGV[1] run
-- ARGV[2] number
-- ARGV[3…] dependents
--
-- Returns "more" | "done"

-- @include delivered
-- @include now_ms
-- @include text_of

local latest, outcome = string.match(redis.call("HGET", endings, run) or "", "^(%d+) (%a+)")
local key, scored = heirs .. ":" .. run, {}
for at = 3, #ARGV do
  -- It may have other news by now, which these have yet to hear.
  if outcome == "completed" and latest == number then
    redis.call("ZREM", key, ARGV[at])
  else
    scored[#scored + 1], scored[#scored + 2] = number, ARGV[at]
  end
end
if #scored > 0 then redis.call("ZADD", key, "XX", "GT", unpack(scored)) end
if latest and redis.call("ZCOUNT", key, "-inf", "(" .. latest) > 0 then
  redis.call("ZADD", outbox, "XX", text_of(now_ms()), run)
  return "more"
end
delivered(run)
return "done"
