-- take: no change of state
--
-- Takes news out of the outbox for a while, to be delivered: whoever took it and died is not waited for longer than
-- that. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS outbox    zset    parent with news -> when to tell
-- KEYS heirs     prefix  of one zset per parent, `heirs:<run>`
-- KEYS endings   hash    parent -> number and kind of its latest news
-- KEYS legacies  hash    parent with news -> its result
-- ARGV[1] limit    how many dependents
-- ARGV[2] hold_ms  how long nobody else takes it
-- ARGV[3] whose    "free": only what nobody else has taken; "all": that too, for who must know that it is delivered
--
-- Returns parent, number, outcome, attempts, how long it is kept for a redrive, its result, and dependents joined by
-- newlines, for each

-- @include cause
-- @include delivered
-- @include now_ms
-- @include text_of

local now, left, reply = now_ms(), tonumber(limit), {}
local upto = whose == "all" and "+inf" or text_of(now)
for _, run in ipairs(redis.call("ZRANGE", outbox, "-inf", upto, "BYSCORE", "LIMIT", 0, 50)) do
  if left <= 0 then break end
  local number, outcome, attempts = string.match(redis.call("HGET", endings, run) or "", "^(%d+) (%a+) (%d+)$")
  local untold = number
    and redis.call("ZRANGE", heirs .. ":" .. run, "-inf", "(" .. number, "BYSCORE", "LIMIT", 0, left) or {}
  if #untold == 0 then
    delivered(run)
  else
    redis.call("ZADD", outbox, text_of(now + hold_ms), run)
    left = left - #untold
    local result = redis.call("HGET", legacies, run) or ""
    local words = { run, number, outcome, attempts, cause_rule(run, outcome), result, table.concat(untold, "\n") }
    for _, word in ipairs(words) do reply[#reply + 1] = word end
  end
end
return reply
