-- Adds one "enqueue" entry to the event stream, for all runs that one call made. Their numbers are consecutive, so
-- the entry has the first and how many more: "0000000a7+499". All names would take ten bytes of memory per job.
-- @include emit_event
-- @include format_integer

local function emit_enqueue_event(first, amount)
  emit_event("enqueue", { amount > 1 and first .. "+" .. format_integer(amount - 1) or first })
end
