-- Reads when the next run of a queue falls due, ms: its first lease, scheduled run, start deadline, stop and outbox
-- entry. Most queues have only leases most of the time.
-- @include format_integer

local function first_score(key, scale)
  local score = redis.call("ZRANGE", key, 0, 0, "WITHSCORES")[2]
  return score and math.floor(score / scale)
end

local function read_due_times()
  local due_times = { processing = first_score(K.processing, 1) }
  due_times.are_rare =
    redis.call(
      "EXISTS", K.scheduled, K.stopping, K.expiring, K.outbox,
      K.fail_pending, K.fail_scheduled, K.fail_processing, K.fail_stopping, K.fail_outbox
    ) > 0
  if due_times.are_rare then
    due_times.scheduled, due_times.stopping = first_score(K.scheduled, 256), first_score(K.stopping, 1)
    due_times.expiring, due_times.outbox = first_score(K.expiring, 1), first_score(K.outbox, 1)
  end
  return due_times
end

-- Returns the ms until the next of these is due, as text; "" for none. Leases may be reaped from `reap_from` on.
local function next_due(due_times, now, reap_from)
  local soonest = due_times.processing and math.max(due_times.processing, reap_from) or math.huge
  soonest = math.min(soonest, due_times.scheduled or soonest, due_times.expiring or soonest)
  soonest = math.min(soonest, due_times.outbox or soonest)
  return soonest < math.huge and format_integer(math.max(0, soonest - now)) or ""
end
