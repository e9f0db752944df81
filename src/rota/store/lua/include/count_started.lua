-- Counts runs that are being claimed, with the time that each has been kept waiting since it was due. `popped` has run and
-- place in turn.
-- @include count_time
-- @include place
-- @include tally
-- @include task_of

local function count_started(popped, bodies, now)
  local amount_of, waited_of, waited, waited_at = {}, {}, 0, nil
  for i = 1, #popped / 2 do
    local task, at = task_of(bodies[i] or ""), popped[2 * i]
    if at ~= waited_at then waited, waited_at = math.max(0, now - due_of(at)), at end
    local of_task = waited_of[task]
    if not of_task then
      of_task = {}
      waited_of[task] = of_task
    end
    amount_of[task] = (amount_of[task] or 0) + 1
    of_task[waited] = (of_task[waited] or 0) + 1
  end
  for task, amount in pairs(amount_of) do
    count(task, "started", amount)
    for ms, times in pairs(waited_of[task]) do count_time(task, "waited", ms, times) end
  end
end
