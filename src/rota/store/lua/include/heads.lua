-- What falls due first in a queue, of each kind there is, in ms. In most queues at most times there are leases alone.
-- keys: scheduled, processing, stopping, expiring, outbox, fail_pending, fail_scheduled, fail_processing, fail_stopping, fail_outbox
-- @include text_of

local function first_of(key, scale)
  local score = redis.call("ZRANGE", key, 0, 0, "WITHSCORES")[2]
  return score and math.floor(score / scale)
end

local function read_heads()
  local heads = { processing = first_of(processing, 1) }
  heads.are_rare =
    redis.call("EXISTS", scheduled, stopping, expiring, outbox, fail_pending, fail_scheduled, fail_processing, fail_stopping, fail_outbox) > 0
  if heads.are_rare then
    heads.scheduled, heads.stopping = first_of(scheduled, 256), first_of(stopping, 1)
    heads.expiring, heads.outbox = first_of(expiring, 1), first_of(outbox, 1)
  end
  return heads
end

-- Milliseconds until the next of these is due, as text; "" when there is none. Leases may be reaped from `reap_from` on.
local function next_due(heads, now, reap_from)
  local soonest = heads.processing and math.max(heads.processing, reap_from) or math.huge
  soonest = math.min(soonest, heads.scheduled or soonest, heads.expiring or soonest, heads.outbox or soonest)
  return soonest < math.huge and text_of(math.max(0, soonest - now)) or ""
end
