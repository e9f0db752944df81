-- One entry in the queue's event stream for runs that one call made. Their numbers follow each other, so the first is named, and
-- how many more there are: "0000000a7+499". Names of all would take ten bytes of memory for each job.
-- @include emit
-- @include text_of

local function emit_made(first, amount)
  emit("enqueue", { amount > 1 and first .. "+" .. text_of(amount - 1) or first })
end
