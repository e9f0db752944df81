-- An id whose run still waits is enqueued again: the run is changed in place, as far as the flags say (see `overlay`);
-- t: its time is replaced, l: if the new one is later, e: if it is earlier; c or k: its counts start again.
-- keys: jobs, runs, pending, scheduled, blocked, expiring, locked, follows, tied
-- @include admit
-- @include lanes
-- @include moment
-- @include note
-- @include overlay
-- @include parts
-- @include place
-- @include record
-- @include reindex
-- @include text_of
-- @include withdraw

local function has(flags, flag)
  return string.find(flags, flag, 1, true) ~= nil
end

-- Why a run cannot be changed into the job asked for, or nil. What is left of a deleted run does not say what it came
-- after; behind it nothing may be put that comes after others, for it would not wait for them.
local function mismatch(run, rest)
  local record = redis.call("HGET", jobs, run)
  local _, new, new_task = split_record("\n" .. rest)
  if not record then return split_options(new)[7] ~= "" and "after" or nil end
  local _, old, task = split_record(record)
  if task ~= new_task then return "task" end
  if split_options(old)[7] ~= split_options(new)[7] then return "after" end
  return nil
end

-- Where a waiting run waits: its place, whichever index it is in.
local function place_of(run)
  local at = redis.call("ZSCORE", pending, run) or redis.call("ZSCORE", blocked, run)
  if at then return tonumber(at) end
  local score = tonumber(redis.call("ZSCORE", scheduled, run) or 100)
  return place(score % 256 - 100, math.floor(score / 256))
end

-- Says how many runs became pending by it.
local function update(run, flags, priority, due, expiry, rest, now)
  local before_it = redis.call("HGET", jobs, run)
  local new_deadline = has(flags, "o") and expiry ~= "" and moment(expiry, now)
  local record, lock = overlay(before_it, rest, flags, new_deadline)
  redis.call("HSET", jobs, run, record)
  reindex(run, before_it, record)
  local line = redis.call("HGET", runs, run)
  local r = line and read_record(line)
  if r and (has(flags, "c") or has(flags, "k")) then
    r.failures, r.stalls = 0, 0
    redis.call("HSET", runs, run, write_record(r))
  end

  local before = place_of(run)
  local wanted, old_due = moment(due, now), due_of(before)
  local new_due = old_due
  if has(flags, "t") or (has(flags, "l") and wanted > old_due) or (has(flags, "e") and wanted < old_due) then
    new_due = wanted
  end
  local after = place(has(flags, "o") and priority or priority_of(before), new_due)
  local must_start_by = redis.call("ZSCORE", expiring, run)
  if has(flags, "o") then
    must_start_by = (not r or tonumber(r.attempt) == 0) and new_deadline and text_of(new_deadline)
  end

  local freed, old_lock = 0, lock_of(run)
  local new_lock = lock ~= "" and lock or old_lock
  if after ~= before or new_lock ~= old_lock then
    if redis.call("HEXISTS", follows, run) > 0 or redis.call("SISMEMBER", tied, run) > 0 then
      redis.call("ZADD", blocked, text_of(after), run)
    else
      freed = withdraw(run)
    end
    if new_lock then redis.call("HSET", locked, run, new_lock) end
    if not redis.call("ZSCORE", blocked, run) and admit(run, priority_of(after), new_due, now) == "pending" then
      freed = freed + 1
    end
  end
  if must_start_by then redis.call("ZADD", expiring, must_start_by, run) else redis.call("ZREM", expiring, run) end
  note(run, { at = now, verb = "update" })
  return freed
end
