-- One entry in the queue's event stream for all runs that one call moved.
-- keys: events

local function emit(verb, moved)
  if #moved > 0 then
    redis.call("XADD", events, "MAXLEN", "~", 10000, "*", verb, table.concat(moved, " "))
  end
end
