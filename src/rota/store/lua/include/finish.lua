-- Writes that runs have ended: state index, retention, the clients that wait, totals and event. `by_rule` maps a
-- retention rule to its runs. Removing them from the index they were in, and their records, are the caller's.
-- keys: meta, waiters
-- @include emit
-- @include retain
-- @include text_of

local function finish(index, state, by_rule, now)
  local ended, scored, at = {}, {}, text_of(now)
  for _, of_rule in pairs(by_rule) do
    for _, run in ipairs(of_rule) do
      ended[#ended + 1] = run
      scored[#scored + 1] = at
      scored[#scored + 1] = run
    end
  end
  if #ended == 0 then return end
  redis.call("ZADD", index, unpack(scored))
  redis.call("HINCRBY", meta, state, #ended)
  emit(state, ended)
  local is_watched = {}
  if redis.call("EXISTS", waiters) > 0 then
    for i, clients in ipairs(redis.call("HMGET", waiters, unpack(ended))) do
      if clients then
        for client in string.gmatch(clients, "%S+") do
          redis.call("PUBLISH", inbox .. client, "ended " .. queue .. " " .. ended[i])
        end
        redis.call("HDEL", waiters, ended[i])
        is_watched[ended[i]] = true
      end
    end
  end
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
