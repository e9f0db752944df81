-- What becomes of a run when a job that it comes after ends.
-- keys: jobs, runs, ids, named, blocked, cancelled, locked, tied, needs, dooms
-- @include admit
-- @include cancel_run
-- @include depart
-- @include emit
-- @include note
-- @include parts
-- @include place
-- @include record
-- @include withdraw

-- Nothing is left to come after: it goes on. Says how many runs became pending.
local function untie(run, now)
  if redis.call("EXISTS", needs .. ":" .. run) > 0 then return 0 end
  local at = redis.call("ZSCORE", blocked, run)
  if not at then return 0 end
  redis.call("SREM", tied, run)
  redis.call("ZREM", blocked, run)
  return admit(run, priority_of(at), due_of(at), now) == "pending" and 1 or 0
end

-- One that it comes after can no longer succeed: it is cancelled, and so, in time, is whatever comes after it. It is
-- kept for as long as the cause, by whose redrive it comes back: "!" among its dooms says that they were why it ended.
local function doom(run, name, now, rule)
  local at = redis.call("ZSCORE", blocked, run)
  if not at then return 0 end
  local line = redis.call("HGET", runs, run)
  local r = line and read_record(line) or new_record("waiting", at)
  r.place = at
  local freed = withdraw(run)
  redis.call("SADD", dooms .. ":" .. run, "!")
  cancel_run(run, r, "comes after " .. name .. ", which did not succeed", now, rule)
  return freed + depart({ run }, "cancelled", now, rule)
end

-- The cause has been redriven: a run that was cancelled for it alone waits again, unless its id has a newer run.
local function revive(run, now)
  local key = dooms .. ":" .. run
  if redis.call("SCARD", key) ~= 1 or redis.call("SISMEMBER", key, "!") == 0 then return end
  local record, line = redis.call("HGET", jobs, run), redis.call("HGET", runs, run)
  if not record or not line then return end
  local r = read_record(line)
  local id = redis.call("HGET", named, run)
  if r.state ~= "cancelled" or (id and redis.call("HGET", ids, id) ~= run) then return end
  local _, options = split_record(record)
  local lock = split_options(options)[6]
  if lock ~= "" then redis.call("HSET", locked, run, lock) end
  redis.call("UNLINK", key)
  redis.call("ZREM", cancelled, run)
  r.state, r.ended_at, r.reason = "waiting", "-", ""
  redis.call("HSET", runs, run, write_record(r))
  redis.call("ZADD", blocked, r.place, run)
  note(run, { at = now, verb = "revive", state = "blocked" })
  emit("revive", { run })
  bequeath({ run }, "waiting", now)
end
