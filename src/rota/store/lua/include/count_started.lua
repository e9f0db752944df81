-- Counts runs that are being claimed, with the time that each has been kept waiting since it was due. `popped` has run and
-- place in turn.
-- @include place
-- @include tally
-- @include task_of

local function count_started(popped, bodies, now)
  -- They come by priority and time: if the first and the last have waited about as long, so have all between.
  local first, last = popped[2], popped[#popped]
  local bucket = bucket_of(math.max(0, now - due_of(first)))
  local are_alike = priority_of(first) == priority_of(last) and bucket == bucket_of(math.max(0, now - due_of(last)))
  local amount_of, waited_of = {}, {}
  for i = 1, #popped / 2 do
    local task, waited = task_of(bodies[i] or ""), now - due_of(popped[2 * i])
    if waited < 0 then waited = 0 end
    amount_of[task] = (amount_of[task] or 0) + 1
    waited_of[task] = (waited_of[task] or 0) + waited
    if not are_alike then count_at(task, HISTOGRAM.waited + bucket_of(waited), 1) end
  end
  for task, amount in pairs(amount_of) do
    count(task, "started", amount)
    count(task, "waited", waited_of[task])
    if are_alike then count_at(task, HISTOGRAM.waited + bucket, amount) end
  end
end
