-- purge: scheduled | blocked | pending -> (none)
--
-- Deletes a slice of the runs that wait, but for steps of workflows. Called until it has nothing left to delete. Sent again with the same token,
-- it says what the first one did.
--
-- flags: allow-oom
-- KEYS meta       hash  totals
-- KEYS pending    zset  run -> place
-- KEYS scheduled  zset  run -> due score
-- KEYS blocked    zset  run -> place
-- KEYS expiring   zset  run -> time it must have started by, ms
-- KEYS locked     hash  run -> its lock
-- KEYS follows    hash  follow-up -> the run before it
-- KEYS parents    set   runs that others come after
-- KEYS waiters    hash  run -> waiting clients
-- KEYS steps      set   runs that belong to a workflow: a purge leaves them alone
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3] limit       how many at most
-- ARGV[4] newest      run after which all stay, or ""
--
-- Returns how many were deleted

-- @include depart
-- @include emit
-- @include followers
-- @include forget
-- @include now_ms
-- @include once
-- @include wake
-- @include withdraw

limit = tonumber(limit)
-- One that is tied to others costs ten times as much.
local is_tied = redis.call("EXISTS", locked, follows, parents) > 0
if is_tied then limit = math.min(limit, 50) end
local has_steps = redis.call("EXISTS", steps) > 0

-- The first runs of an index that are old enough. Newer ones may stand before them by their priority, but in the time
-- of a purge not many can have come.
local function slice_of(index, wanted)
  local slice, from = {}, 0
  while #slice < wanted and from < 4 * limit do
    local found = redis.call("ZRANGE", index, from, from + wanted - 1)
    if #found == 0 then break end
    for _, run in ipairs(found) do
      local is_step = has_steps and redis.call("SISMEMBER", steps, run) == 1
      if #slice < wanted and (newest == "" or run <= newest) and not is_step then slice[#slice + 1] = run end
    end
    from = from + #found
  end
  return slice
end

local function purge()
  local gone, freed, now = {}, 0, now_ms()
  for _, index in ipairs({ pending, scheduled, blocked }) do
    if #gone < limit then
      local slice = slice_of(index, limit - #gone)
      if #slice > 0 then redis.call("ZREM", index, unpack(slice)) end
      for _, run in ipairs(slice) do
        gone[#gone + 1] = run
        if is_tied then
          freed = freed + withdraw(run)
          unfollow(run)
        end
      end
    end
  end
  if #gone == 0 then return "0" end
  if redis.call("EXISTS", expiring) > 0 then redis.call("ZREM", expiring, unpack(gone)) end
  if redis.call("EXISTS", waiters) > 0 then
    for i, clients in ipairs(redis.call("HMGET", waiters, unpack(gone))) do
      for client in string.gmatch(clients or "", "%S+") do
        redis.call("PUBLISH", inbox .. client, "ended " .. queue .. " " .. gone[i])
      end
    end
  end
  wake(freed + depart(gone, "deleted", now))
  forget(gone)
  redis.call("HINCRBY", meta, "deleted", #gone)
  emit("purge", gone)
  return tostring(#gone)
end

return once(purge)
