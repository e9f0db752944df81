-- Pops the first pending runs whose tasks have room on the worker (`per_worker=`), and passes over the others. A call
-- examines FRONT runs at the front, and then SCANNED runs from where the worker's last claim ended: so every run is
-- reached, however many of a full task wait before it. Only workers with such tasks pay for it. Runs of paused tasks
-- are passed over as well: only those at the front of `pending` have been set aside.
-- @include find_task_of_run
-- @include pending_score
-- @include queue_key_prefix

local FRONT, SCANNED = 50, 450

-- Returns how many more runs of each task the worker can take, none of a paused one; the set of paused tasks; and a
-- function that finds the task of a run, if it is one of these.
local function read_room(text, has_paused_tasks)
  local room_of, tasks, is_paused = {}, {}, {}
  for task, room in string.gmatch(text, "(%S+)=(%d+)") do
    room_of[task], tasks[#tasks + 1] = tonumber(room), task
  end
  local since = has_paused_tasks and redis.call("HGETALL", queue_key_prefix .. "paused_tasks") or {}
  for i = 1, #since, 2 do
    if since[i + 1] ~= "resuming" then
      room_of[since[i]], tasks[#tasks + 1], is_paused[since[i]] = 0, since[i], true
    end
  end
  return room_of, is_paused, task_finder(tasks)
end

-- `room` is the rank from which to go on, and `task=room` for each task that may be full. Returns run and score in
-- turn; whether the worker is to claim again at once, to go on; the rank from which; and the latest time at which one
-- of the runs that were passed over became due, or nil: a run of a paused task does not count, as no worker has room.
local function pop_runs_of_tasks_with_room(limit, room, longest, has_paused_tasks)
  local room_of, is_paused, task_of = read_room(room, has_paused_tasks)
  local most = longest and math.max(1, math.min(limit, math.floor(C.CALL_BYTES / longest))) or limit
  local popped, runs, passed_due, rank = {}, {}, nil, 0
  local function examine(first, last)
    rank = first
    local members = redis.call("ZRANGE", K.pending, first, last, "WITHSCORES")
    for i = 1, #members, 2 do
      if #runs == most then return end
      local run, task = members[i], task_of(members[i])
      local left = task and room_of[task]
      if left == 0 then
        local due = due_in_score(tonumber(members[i + 1]))
        if not is_paused[task] then passed_due = math.max(passed_due or 0, due) end
      else
        if left then room_of[task] = left - 1 end
        runs[#runs + 1], popped[#popped + 1], popped[#popped + 2] = run, run, members[i + 1]
      end
      rank = rank + 1
    end
  end
  local waiting = redis.call("ZCARD", K.pending)
  examine(0, FRONT - 1)
  if #runs < most and waiting > FRONT then
    local from = math.max(FRONT, math.min(tonumber(string.match(room, "^%d+")), waiting - SCANNED))
    examine(from, from + SCANNED - 1)
  end
  if #runs > 0 then redis.call("ZREM", K.pending, unpack(runs)) end
  return popped, #runs < limit and rank < waiting, math.max(0, rank - #runs), passed_due
end
