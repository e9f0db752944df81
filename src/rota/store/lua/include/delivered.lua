-- All dependents of a parent have heard its latest news. Those of one that succeeded, or is no more, need it no longer;
-- those of one that may be redriven are kept with it, or with the run that it became a part of.
-- keys: jobs, merged, parents, heirs, endings, legacies, outbox

local function delivered(run)
  redis.call("ZREM", outbox, run)
  redis.call("HDEL", legacies, run)
  local outcome = string.match(redis.call("HGET", endings, run) or "", "^%d+ (%a+)")
  if outcome == "completed" or redis.call("HEXISTS", jobs, run) + redis.call("HEXISTS", merged, run) == 0 then
    redis.call("SREM", parents, run)
    redis.call("HDEL", endings, run)
    redis.call("UNLINK", heirs .. ":" .. run)
  end
end
