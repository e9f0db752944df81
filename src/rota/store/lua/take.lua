-- take: no change of state
--
-- Takes news out of the outbox for a while, to be delivered: whoever took it and died is not waited for longer than
-- that. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS outbox   zset    parent with news -> when to tell
-- KEYS heirs    prefix  of one zset per parent, `heirs:<run>`
-- KEYS endings  hash    parent -> number and kind of its latest news
-- ARGV[1] limit    how many dependents
-- ARGV[2] hold_ms  how long nobody else takes it
--
-- Returns parent, number, outcome, how long it is kept for a redrive, and dependents joined by newlines, for each

-- @include cause
-- @include delivered
-- @include now_ms
-- @include text_of

local now, left, reply = now_ms(), tonumber(limit), {}
for _, run in ipairs(redis.call("ZRANGE", outbox, "-inf", text_of(now), "BYSCORE", "LIMIT", 0, 50)) do
  if left <= 0 then break end
  local number, outcome = string.match(redis.call("HGET", endings, run) or "", "^(%d+) (%a+)$")
  local untold = number
    and redis.call("ZRANGE", heirs .. ":" .. run, "-inf", "(" .. number, "BYSCORE", "LIMIT", 0, left) or {}
  if #untold == 0 then
    delivered(run)
  else
    redis.call("ZADD", outbox, text_of(now + hold_ms), run)
    left = left - #untold
    for _, word in ipairs({ run, number, outcome, cause_rule(run, outcome), table.concat(untold, "\n") }) do reply[#reply + 1] = word end
  end
end
return reply
