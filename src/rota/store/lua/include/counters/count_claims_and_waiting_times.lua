-- Counts claims by task, and how long each claimed run had waited since it was due. `popped` has run and score in
-- turn.
-- @include count_duration_by_task
-- @include gather_and_write_counts
-- @include pending_score
-- @include task_of_job_record

local function count_claims_and_waiting_times(popped, bodies, now)
  local amount_of, waited_of, waited, waited_at = {}, {}, 0, nil
  for i = 1, #popped / 2 do
    local task, at = task_of_job_record(bodies[i] or ""), popped[2 * i]
    if at ~= waited_at then
      local due = due_in_score(at)
      -- A damaged score was replaced by 0: nothing is known about that wait.
      waited, waited_at = due > 0 and math.max(0, now - due) or 0, at
    end
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
    for ms, times in pairs(waited_of[task]) do count_duration_by_task(task, "waited", ms, times) end
  end
end
