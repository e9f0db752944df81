-- purge: scheduled | blocked | pending -> (none)
--
-- Deletes a batch of waiting runs, except steps of workflows. The caller repeats it until nothing is left to delete.
-- Sent again with the same token, it returns the first reply.
--
-- flags: allow-oom
-- KEYS meta            hash  counters run, fence, totals; is_paused, server_seen, grace_until
-- KEYS pending         zset  run -> score: priority, then the time it became due
-- KEYS scheduled       zset  run -> time it falls due, and its priority
-- KEYS blocked         zset  run -> its pending score once released
-- KEYS expiring        zset  run with a start deadline -> that deadline, ms
-- KEYS locked          hash  unfinished run -> the lock it asked for
-- KEYS follows         hash  follow-up -> the run that it waits for
-- KEYS has_dependents  set   runs that others depend on
-- KEYS paused_tasks    hash  paused task -> since when, by whom and why; "resuming" while its runs are put back
-- KEYS waiters         hash  run -> clients that wait for its end
-- KEYS steps           set   runs that belong to a workflow
-- ARGV[1] queue
-- ARGV[2] inbox       prefix of the channels
-- ARGV[3] limit       how many at most
-- ARGV[4] newest      later runs stay; or ""
-- ARGV[5] look        how many it may examine
-- ARGV[6] after       "", or the last run that was examined before: its index, score and name
--
-- Returns how many were deleted; or "after" and the last run examined, if none of them may be deleted and there are
-- more

-- @include emit_event
-- @include find_and_detach_follow_up
-- @include find_rank_by_score_and_member
-- @include increment_counter
-- @include is_run_before
-- @include now_ms
-- @include release_next_runs_if_any_wait
-- @include remove_runs_except_from_state_indexes
-- @include remove_waiting_run_from_indexes
-- @include run_once_per_token
-- @include wake_idle_workers

limit, look = tonumber(limit), tonumber(look)
-- A run with a lock, follow-up, dependents or a paused task costs ten times as much.
local has_bonds = redis.call("EXISTS", K.locked, K.follows, K.has_dependents, K.paused_tasks) > 0
if has_bonds then limit = math.min(limit, 50) end
local has_steps = redis.call("EXISTS", K.steps) > 0
-- Runs move to `pending` from the others: it comes last, so that a purge which takes several calls misses none.
local INDEXES = { { "scheduled", K.scheduled }, { "blocked", K.blocked }, { "pending", K.pending } }
local after_index, after_score, after_run = string.match(after, "^(%a+) (%S+) (%S+)$")

-- Returns the next runs of an index that are old enough and belong to no workflow. Thousands of steps may precede
-- them. Ranks change while workers claim, so it continues after the last run examined.
local function slice_of(name, index, wanted)
  local slice, size, rank = {}, redis.call("ZCARD", index), 0
  if after_index == name then
    local is_there
    rank, is_there = find_rank_by_score_and_member(index, after_score, after_run)
    if is_there then rank = rank + 1 end
  end
  while #slice < wanted and rank < size and look > 0 do
    local found = redis.call("ZRANGE", index, rank, rank + math.min(wanted, look) - 1)
    local are_steps = has_steps and redis.call("SMISMEMBER", K.steps, unpack(found))
    for i, run in ipairs(found) do
      local stays = (newest ~= "" and is_run_before(newest, run)) or (are_steps and are_steps[i] == 1)
      if #slice < wanted and not stays then slice[#slice + 1] = run end
    end
    rank, look = rank + #found, look - #found
    if look == 0 then after = name .. " " .. redis.call("ZSCORE", index, found[#found]) .. " " .. found[#found] end
  end
  return slice
end

local function purge()
  local gone, freed, now, has_reached = {}, 0, now_ms(), not after_index
  for _, one in ipairs(INDEXES) do
    local name, index = unpack(one)
    if name == after_index then has_reached = true end
    if has_reached and #gone < limit then
      local slice = slice_of(name, index, limit - #gone)
      if #slice > 0 then redis.call("ZREM", index, unpack(slice)) end
      for _, run in ipairs(slice) do
        gone[#gone + 1] = run
        if has_bonds then
          freed = freed + remove_waiting_run_from_indexes(run)
          detach_follow_up(run)
        end
      end
    end
  end
  if #gone == 0 then return look > 0 and "0" or "after " .. after end
  if redis.call("EXISTS", K.expiring) > 0 then redis.call("ZREM", K.expiring, unpack(gone)) end
  if redis.call("EXISTS", K.waiters) > 0 then
    for i, clients in ipairs(redis.call("HMGET", K.waiters, unpack(gone))) do
      for client in string.gmatch(clients or "", "%S+") do
        redis.call("PUBLISH", inbox .. client, "ended " .. queue .. " " .. gone[i])
      end
    end
  end
  wake_idle_workers(freed + release_next_runs_if_any_wait(gone, "deleted", now))
  remove_runs_except_from_state_indexes(gone)
  increment_counter(K.meta, "deleted", #gone)
  emit_event("purge", gone)
  return tostring(#gone)
end

return run_once_per_token(purge)
