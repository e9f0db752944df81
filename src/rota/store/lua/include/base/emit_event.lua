-- Adds one entry to the event stream, for all runs that one call moved.

local function emit_event(verb, moved)
  if #moved > 0 then
    redis.call("XADD", K.events, "MAXLEN", "~", C.EVENTS_KEPT, "*", verb, table.concat(moved, " "))
  end
end
