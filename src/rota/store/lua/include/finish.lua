-- Writes that runs have ended: state index, retention, the clients that wait, totals and event. `by_rule` maps a
-- retention rule to its runs. Removing them from the index they were in, and their records, are the caller's.
-- keys: meta, waiters
-- @include emit
-- @include retain
-- @include text_of
-- @rare tell_waiters

local function finish(index, state, by_rule, now)
  local ended, scored, at, count = {}, {}, text_of(now), 0
  for _, of_rule in pairs(by_rule) do
    for i = 1, #of_rule do
      count = count + 1
      ended[count], scored[2 * count - 1], scored[2 * count] = of_rule[i], at, of_rule[i]
    end
  end
  if count == 0 then return end
  redis.call("ZADD", index, unpack(scored))
  redis.call("HINCRBY", meta, state, count)
  emit(state, ended)
  local is_watched = redis.call("EXISTS", waiters) > 0 and tell_waiters(ended) or {}
  local awaited = {}
  for rule, of_rule in pairs(by_rule) do
    if next(is_watched) and (string.match(rule, "^0:") or string.match(rule, ":0$")) then
      -- Somebody is about to read this result: a rule that keeps nothing waits a minute.
      local others = {}
      for _, run in ipairs(of_rule) do table.insert(is_watched[run] and awaited or others, run) end
      of_rule = others
    end
    if #of_rule > 0 then retain(index, state, rule, of_rule, now) end
  end
  if #awaited > 0 then retain(index, state, "60000:10000", awaited, now) end
end
