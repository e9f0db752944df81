-- What becomes of a run when a job that it comes after ends.
-- keys: jobs, runs, ids, named, blocked, cancelled, expiring, locked, tied, needs, dooms
-- @include admit
-- @include cancel_run
-- @include deadline
-- @include depart
-- @include finish
-- @include note
-- @include parts
-- @include place
-- @include policy
-- @include record
-- @include text_of

-- Nothing is left to come after: it goes on. Says how many runs became pending.
local function untie(run, now)
  if redis.call("EXISTS", needs .. ":" .. run) > 0 then return 0 end
  local at = redis.call("ZSCORE", blocked, run)
  if not at then return 0 end
  redis.call("SREM", tied, run)
  redis.call("ZREM", blocked, run)
  return admit(run, priority_of(at), due_of(at), now) == "pending" and 1 or 0
end

-- The rule that keeps a run longer.
local function longer(rule, other)
  local function age(of) return tonumber(string.match(of, "^%d+") or -1) end
  return age(other) > age(rule) and other or rule
end

-- One that it comes after can no longer succeed: it is cancelled, and so, in time, is whatever comes after it. It is
-- kept for as long as the cause, by whose redrive it comes back: "!" among its dooms says that they were why it ended,
-- and for how long that is. `bury` ends all that one call has doomed.
local doomed, doomed_by_rule = {}, {}

local function doom(run, name, now, rule)
  local at = redis.call("ZSCORE", blocked, run)
  if not at then return end
  local line = redis.call("HGET", runs, run)
  local r = line and read_record(line) or new_record("waiting", at)
  r.place = at
  redis.call("ZREM", blocked, run)
  redis.call("ZREM", expiring, run)
  redis.call("HSET", dooms .. ":" .. run, "!", rule)
  write_cancelled(run, r, "comes after " .. name .. ", which did not succeed", now)
  local kept_by = longer(policy(run).finished_rule, rule)
  doomed_by_rule[kept_by] = doomed_by_rule[kept_by] or {}
  table.insert(doomed_by_rule[kept_by], run)
  doomed[#doomed + 1] = run
end

local function bury(now)
  depart(doomed, "cancelled", now)
  finish(cancelled, "cancelled", doomed_by_rule, now)
  doomed, doomed_by_rule = {}, {}
end

-- The cause has been redriven: a run that was cancelled for it alone waits again, unless its id has a newer run. True if
-- it does. One that is too late by now expires next.
local function revive(run, now)
  if #doomed > 0 then bury(now) end
  local key = dooms .. ":" .. run
  if redis.call("HLEN", key) ~= 1 or redis.call("HEXISTS", key, "!") == 0 then return false end
  local record, line = redis.call("HGET", jobs, run), redis.call("HGET", runs, run)
  if not record or not line then return false end
  local r = read_record(line)
  local head, options = split_record(record)
  local id, suffix = redis.call("HGET", named, run), string.match(head or "", "^%S+")
  if not suffix or r.state ~= "cancelled" then return false end
  local newest = redis.call("HGET", ids, id or run .. "-" .. suffix)
  if newest ~= (id and run or false) then return false end
  local lock = split_options(options)[6]
  if lock ~= "" then redis.call("HSET", locked, run, lock) end
  redis.call("UNLINK", key)
  redis.call("ZREM", cancelled, run)
  r.state, r.ended_at, r.reason = "waiting", "-", ""
  redis.call("HSET", runs, run, write_record(r))
  redis.call("ZADD", blocked, r.place, run)
  local deadline = deadline_of(record)
  if deadline then redis.call("ZADD", expiring, text_of(deadline), run) end
  note(run, { at = now, verb = "revive", state = "blocked" })
  return true
end
