-- purge: scheduled | blocked | pending -> (none)
--
-- Deletes a slice of the runs that wait, but for steps of workflows. Called until it has nothing left to delete. Sent
-- again with the same token, it says what the first one did.
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
-- ARGV[5] look        how many it may look at
-- ARGV[6] skip        how many have been looked at before, and stay
--
-- Returns how many were deleted; "skip" and a number when none of that many is to be deleted, and there are more

-- @include depart
-- @include emit
-- @include followers
-- @include forget
-- @include now_ms
-- @include once
-- @include text_of
-- @include wake
-- @include withdraw

limit, look, skip = tonumber(limit), tonumber(look), tonumber(skip)
-- One that is tied to others costs ten times as much.
local is_tied = redis.call("EXISTS", locked, follows, parents) > 0
if is_tied then limit = math.min(limit, 50) end
local has_steps = redis.call("EXISTS", steps) > 0
local seen = skip

-- The next runs of an index that are old enough, and belong to no workflow: thousands of steps may stand before them.
local function slice_of(index, wanted)
  local slice, size = {}, redis.call("ZCARD", index)
  if skip >= size then
    skip = skip - size
    return slice
  end
  while #slice < wanted and skip < size and look > 0 do
    local found = redis.call("ZRANGE", index, skip, skip + math.min(wanted, look) - 1)
    local are_steps = has_steps and redis.call("SMISMEMBER", steps, unpack(found))
    for i, run in ipairs(found) do
      local stays = (newest ~= "" and run > newest) or (are_steps and are_steps[i] == 1)
      if #slice < wanted and not stays then slice[#slice + 1] = run end
    end
    skip, seen, look = skip + #found, seen + #found, look - #found
  end
  skip = 0
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
  if #gone == 0 then return look > 0 and "0" or "skip " .. text_of(seen) end
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
