-- Returns when the failure queue is due, that is, must be claimed from: "fail:<ms>", or "" while it is empty. So a
-- queue without failure handlers costs its workers nothing.
-- @include format_integer
-- @include scheduled_score

local function failure_queue_due_time(now)
  local any = redis.call(
    "EXISTS", K.fail_pending, K.fail_scheduled, K.fail_processing, K.fail_stopping, K.fail_outbox
  )
  if any == 0 then return "" end
  local now_due = redis.call("EXISTS", K.fail_pending, K.fail_processing, K.fail_stopping, K.fail_outbox)
  if now_due > 0 then return "fail:0" end
  local score = redis.call("ZRANGE", K.fail_scheduled, 0, 0, "WITHSCORES")[2]
  return "fail:" .. format_integer(math.max(0, due_when_scheduled(score) - now))
end
