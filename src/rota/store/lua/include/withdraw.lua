-- A waiting run leaves all that it waits in, before it is ended, deleted or moved. Says how many runs became pending.
-- keys: pending, scheduled, blocked, expiring
-- @include lanes

local function withdraw(run)
  local lock = lock_of(run)
  local freed = lock and vacate(run, lock) or 0
  for _, index in ipairs({ pending, scheduled, blocked, expiring }) do redis.call("ZREM", index, run) end
  return freed
end
