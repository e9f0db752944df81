-- Makes a run that is due now, under an id that no other run may have: what `enqueue` does for one such job. Says which
-- run, and in which state it is: pending, or blocked by its lock.
-- keys: meta, jobs, ids, named, expiring, locked
-- @include index_run
-- @include lanes
-- @include moment
-- @include parts
-- @include place
-- @include run_name
-- @include text_of

local function spawn(id, priority, expiry, body, now)
  local run = run_name(redis.call("HINCRBY", meta, "run", 1))
  local record = "=" .. id .. " " .. text_of(now) .. "\n" .. body
  local _, options = split_record(record)
  local lock = split_options(options)[6]
  redis.call("HSET", jobs, run, record)
  index_run(run, record)
  redis.call("HSET", named, run, id)
  redis.call("HSET", ids, id, run)
  if expiry ~= "" then redis.call("ZADD", expiring, text_of(moment(expiry, now)), run) end
  if lock ~= "" then redis.call("HSET", locked, run, lock) end
  return run, enter(run, text_of(place(priority, now)), lock ~= "" and lock or nil)
end
