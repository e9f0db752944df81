-- When the failures of this queue want to be looked at: "fail:<ms>", and "" as long as nothing waits or runs there. So a
-- queue whose jobs have no failure handlers costs its workers nothing.
-- keys: fail_pending, fail_scheduled, fail_processing, fail_stopping, fail_outbox
-- @include text_of

local function failures_due(now)
  if redis.call("EXISTS", fail_pending, fail_scheduled, fail_processing, fail_stopping, fail_outbox) == 0 then return "" end
  if redis.call("EXISTS", fail_pending, fail_processing, fail_stopping, fail_outbox) > 0 then return "fail:0" end
  local score = redis.call("ZRANGE", fail_scheduled, 0, 0, "WITHSCORES")[2]
  return "fail:" .. text_of(math.max(0, math.floor(score / 256) - now))
end
