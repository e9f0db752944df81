-- claim: pending -> processing
--
-- Leases the first pending runs of the queue to a worker, after what has become due: promote, expire, reap. A worker
-- that asks for more than there is joins the idle ones in the same step, so that no wake-up falls in between; it may
-- leave its next claim there, for `push_job_to_idle_worker`. Sent again with the same call number, it returns the
-- same runs, as far as this claim still owns them.
--
-- flags: allow-oom
-- KEYS jobs      hash  run -> job record: head, options, task, arguments
-- KEYS runs      hash  run -> run record: state, claim, worker, times, counts
-- KEYS pending   zset  run -> score: priority, then the time it became due
-- KEYS expiring  zset  run with a start deadline -> that deadline, ms
-- KEYS idle      zset  worker that waits, and its next claim -> since
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3] call_number
-- ARGV[4] worker
-- ARGV[5] token       random half of the claim, made by the worker
-- ARGV[6] limit       how many runs the worker has free slots for
-- ARGV[7] lease_ms
-- ARGV[8] bound       how many runs promote, expire and reap may move
-- ARGV[9] next_token  claim token of its next claim, if a push may carry that out; else ""
-- ARGV[10] task_room  "" or, where tasks may be full: the rank to go on from, then task=room for each of them
-- ARGV[11] outage_gap_ms  a longer time without a claim or heartbeat counts as an outage of the server
--
-- Returns fence; ms until something falls due, or ""; words ("outbox": outcomes wait for delivery; "fail:<ms>": when
-- the failure queue is due; "vanished:<run>,…": runs taken back from dead workers; "passed:<rank>": runs of full
-- tasks were passed over, and where to go on); the claimed runs, separated by spaces; their counts, separated by
-- commas ("" for a first attempt; "" if all are); then the job record of each

-- @include detect_server_outage
-- @include failure_queue_due_time
-- @include format_integer
-- @include gather_and_write_counts
-- @include lease_runs_to_worker
-- @include now_ms
-- @include parse_and_format_run_record
-- @include read_next_due_times
-- @include replay_reply_of_numbered_call
-- @include wake_idle_workers
-- @rare pop_runs_of_tasks_with_room
-- @rare pop_runs_within_bytes
-- @rare promote_expire_and_reap_due_runs
-- @rare set_aside_runs_of_paused_tasks

local now = now_ms()
limit, lease_ms, bound = tonumber(limit), tonumber(lease_ms), tonumber(bound)

-- The reply, without its second and third entries.
local function answer(fence, claimed, counts, bodies)
  local has_counts = false
  for i = 1, #claimed do has_counts = has_counts or counts[i] ~= "" end
  local reply = { fence, "", "", table.concat(claimed, " "), has_counts and table.concat(counts, ",") or "" }
  for i = 1, #claimed do reply[5 + i] = bodies[i] or "" end
  return reply
end

-- The member of `idle` for a worker that leaves its next claim.
local function left_claim(number, its_token)
  return table.concat({ worker, format_integer(number), its_token, format_integer(lease_ms) }, " ")
end

local before = recall_reply("claim", call_number)
if before == "" then return { "0", "", "", "", "" } end
if before then
  local fence, list = string.match(before, "^(%S+) ?(.*)$")
  local claimed, counts, bodies = {}, {}, {}
  for run in string.gmatch(list, "%S+") do
    local line = redis.call("HGET", K.runs, run)
    if is_claim(line, "processing", fence .. "." .. token) then
      claimed[#claimed + 1], counts[#counts + 1] = run, counts_of(line)
      bodies[#bodies + 1] = redis.call("HGET", K.jobs, run) or ""
    end
  end
  local reply = answer(fence, claimed, counts, bodies)
  reply[2] = "0"
  return reply
end

local may_reap, reap_from, is_paused, longest, has_paused_tasks =
  record_server_seen(now, lease_ms, tonumber(outage_gap_ms))
local due_times, more, stalled_runs = read_due_times(), false, {}

local function is_due(at) return at and at <= now end

local may_move = is_due(due_times.scheduled) or is_due(due_times.expiring)
if may_move or (may_reap and (is_due(due_times.processing) or is_due(due_times.stopping))) then
  more, stalled_runs = promote_expire_and_reap_due_runs(now, may_reap, bound, longest)
  due_times = read_due_times()
end
-- The call has done enough: the worker claims again at once. While expired runs may be pending, nothing is leased.
if more then limit = is_due(due_times.expiring) and 0 or math.min(limit, bound) end
if has_paused_tasks and limit > 0 and not is_paused then
  local allowed, is_more = set_aside_runs_of_paused_tasks(limit, bound)
  if is_more then more, limit = true, allowed end
end
local popped, is_cut, reply, passed_until, passed_due = {}, false, nil, nil, nil
if limit > 0 and not is_paused then
  if task_room ~= "" then
    popped, is_cut, passed_until, passed_due =
      pop_runs_of_tasks_with_room(limit, task_room, longest, has_paused_tasks)
  elseif longest and limit * longest > C.CALL_BYTES then
    popped, is_cut = pop_runs_within_bytes(limit)
  else
    popped = redis.call("ZPOPMIN", K.pending, limit)
  end
end
if is_cut then more, limit = true, #popped / 2 end

if #popped > 0 then
  local fence, claimed, counts, bodies = lease_runs_to_worker(popped, worker, token, now, lease_ms)
  due_times.processing = math.min(due_times.processing or math.huge, now + lease_ms)
  if due_times.expiring and redis.call("ZREM", K.expiring, unpack(claimed)) > 0 then
    due_times.expiring = first_score(K.expiring, 1)
  end
  reply = answer(fence, claimed, counts, bodies)
  remember_reply("claim", call_number, fence .. " " .. reply[4])
else
  reply = answer("0", {}, {}, {})
end

local taken = #popped / 2
-- The claim that the worker left when it became idle is this one.
redis.call("ZREM", K.idle, worker, left_claim(call_number, token))
if taken < limit then
  local member = next_token == "" and worker or left_claim(call_number + 1, next_token)
  redis.call("ZADD", K.idle, format_integer(now), member)
elseif not (is_cut and passed_due) then
  -- The worker has no free slot: wake another one for the rest.
  if not is_paused and redis.call("ZCARD", K.pending) > 0 then wake_idle_workers(1) end
end
if passed_due then
  -- Another worker may have room. One that became idle after the latest of these runs became due has seen them all.
  local idle_since = redis.call("ZRANGE", K.idle, 0, 0, "WITHSCORES")[2]
  if idle_since and tonumber(idle_since) <= passed_due then wake_idle_workers(1) end
end
write_counters(now)
reply[2] = more and "0" or next_due(due_times, now, reap_from)
if is_due(due_times.outbox) then reply[3] = "outbox " end
if due_times.are_rare then reply[3] = reply[3] .. failure_queue_due_time(now) end
if passed_due then reply[3] = reply[3] .. " passed:" .. format_integer(passed_until) end
if #stalled_runs > 0 then reply[3] = reply[3] .. " vanished:" .. table.concat(stalled_runs, ",") end
return reply
