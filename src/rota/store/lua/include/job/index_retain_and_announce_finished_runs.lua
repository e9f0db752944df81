-- Adds finished runs to the index of their state and to their retention rule, and announces their end: to waiting
-- clients, in the totals and the event stream. `by_rule` maps a retention rule to its runs. The caller removes them
-- from their previous index and writes their records.
-- @include emit_event
-- @include format_integer
-- @include increment_counter
-- @include retain_finished_runs_by_age_and_count
-- @rare notify_clients_waiting_for_runs

local function index_retain_and_announce_finished_runs(index, state, by_rule, now)
  local ended, scored, at, count = {}, {}, format_integer(now), 0
  for _, of_rule in pairs(by_rule) do
    for i = 1, #of_rule do
      count = count + 1
      ended[count], scored[2 * count - 1], scored[2 * count] = of_rule[i], at, of_rule[i]
    end
  end
  if count == 0 then return end
  redis.call("ZADD", index, unpack(scored))
  increment_counter(K.meta, state, count)
  emit_event(state, ended)
  local is_watched = redis.call("EXISTS", K.waiters) > 0 and notify_clients_waiting_for_runs(ended) or {}
  local awaited, spare = {}, 100
  for rule, of_rule in pairs(by_rule) do
    if next(is_watched) and (string.match(rule, "^0:") or string.match(rule, ":0$")) then
      -- A waiting client is about to read this result: a rule that keeps nothing waits a minute.
      local others = {}
      for _, run in ipairs(of_rule) do table.insert(is_watched[run] and awaited or others, run) end
      of_rule = others
    end
    if #of_rule > 0 then spare = retain_runs(index, state, rule, of_rule, now, spare) end
  end
  if #awaited > 0 then retain_runs(index, state, "60000:10000", awaited, now, spare) end
end
