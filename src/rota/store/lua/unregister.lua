-- unregister: no change of state
--
-- In the slot of the parents: takes back what `register` noted for a dependent that was never made. Harmless when sent
-- again.
--
-- flags: allow-oom
-- KEYS parents  set     runs that others come after
-- KEYS heirs    prefix  of one zset per parent, `heirs:<run>`
-- KEYS endings  hash    parent -> number and kind of its latest news
-- KEYS outbox   zset    parent with news -> when to tell
-- ARGV[1…] three for each, as `register` had them
--
-- Returns "unregistered"

-- @include resolve

for at = 1, #ARGV, 3 do
  local found = resolve(ARGV[at], ARGV[at + 1])
  if found then
    redis.call("ZREM", heirs .. ":" .. found, ARGV[at + 2])
    if redis.call("EXISTS", heirs .. ":" .. found) == 0 then
      redis.call("SREM", parents, found)
      redis.call("HDEL", endings, found)
      redis.call("ZREM", outbox, found)
    end
  end
end
return "unregistered"
