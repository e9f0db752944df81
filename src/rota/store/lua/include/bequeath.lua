-- What runs that have ended leave to those who come after them. Dependents may live in other slots: what they are to hear is
-- put into the outbox, in the same step.
-- keys: meta, runs, merges, parents, endings, legacies, outbox, results
-- @include text_of
-- @include wake

-- Has all dependents of these runs told of `outcome`, also of those who came after a follow-up that merged into one of
-- them. The number lets them tell old news from new.
local function bequeath(told, outcome, now)
  if redis.call("EXISTS", parents) == 0 then return end
  local has_news = false
  local function tell(run, ended)
    local number = redis.call("HINCRBY", meta, "said", 1)
    local attempts = string.match(redis.call("HGET", runs, ended) or "", "^%S+ %S+ %S+ %S+ %S+ (%d+)") or "0"
    redis.call("HSET", endings, run, text_of(number) .. " " .. outcome .. " " .. attempts)
    -- Its own rule may keep the result no longer than this step.
    local result = outcome == "completed" and redis.call("HGET", results, ended)
    if result then redis.call("HSET", legacies, run, result) end
    redis.call("ZADD", outbox, text_of(now), run)
    has_news = true
  end
  for i, has_heirs in ipairs(redis.call("SMISMEMBER", parents, unpack(told))) do
    if has_heirs == 1 then tell(told[i], told[i]) end
  end
  if redis.call("EXISTS", merges) > 0 then
    for i, others in ipairs(redis.call("HMGET", merges, unpack(told))) do
      for other in string.gmatch(others or "", "%S+") do
        if redis.call("SISMEMBER", parents, other) > 0 then tell(other, told[i]) end
      end
    end
  end
  if has_news then wake(1) end
end
