-- Runs have ended and no handler of theirs is at work any more: whoever waited for that goes on. The next of a lock's
-- lane and the follow-up of an id do so here. Dependents may live in other slots: what they are to hear is put into
-- the outbox, in the same step. Says how many runs became pending. It comes before `finish`, which may forget them.
-- keys: meta, runs, blocked, locked, followers, follows, merges, parents, endings, legacies, outbox, results
-- @include admit
-- @include followers
-- @include lanes
-- @include place
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

local function depart(gone, outcome, now)
  if #gone == 0 then return 0 end
  bequeath(gone, outcome, now)
  local freed = 0
  if redis.call("EXISTS", locked) > 0 then freed = vacate_all(gone) end
  if redis.call("EXISTS", followers) > 0 then
    for _, run in ipairs(gone) do
      local following = follower_of(run)
      if following then
        redis.call("HDEL", followers, run)
        redis.call("HDEL", follows, following)
        local at = redis.call("ZSCORE", blocked, following)
        redis.call("ZREM", blocked, following)
        if at and admit(following, priority_of(at), due_of(at), now) == "pending" then freed = freed + 1 end
      end
    end
  end
  return freed
end
