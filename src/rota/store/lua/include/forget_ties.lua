-- Forgets what ties runs to others. Dependents that have yet to hear of an end are still told of it.
-- keys: merged, merges, tied, needs, dooms, parents, heirs, endings, steps, outbox

local function disown(run)
  if redis.call("SISMEMBER", parents, run) > 0 and not redis.call("ZSCORE", outbox, run) then
    redis.call("SREM", parents, run)
    redis.call("HDEL", endings, run)
    redis.call("UNLINK", heirs .. ":" .. run)
  end
end

local function forget_ties(gone)
  if redis.call("EXISTS", merges, tied, parents, steps) == 0 then return end
  for _, run in ipairs(gone) do
    for other in string.gmatch(redis.call("HGET", merges, run) or "", "%S+") do
      redis.call("HDEL", merged, other)
      disown(other)
    end
    redis.call("HDEL", merges, run)
    redis.call("SREM", steps, run)
    if redis.call("SREM", tied, run) > 0 then redis.call("UNLINK", needs .. ":" .. run, dooms .. ":" .. run) end
    disown(run)
  end
end
