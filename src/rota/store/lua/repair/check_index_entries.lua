-- check_index_entries: no change of state
--
-- Checks some entries of one index of a queue, from a position on: that the run that each names is known. In the mode
-- "repair" it removes those whose run is gone. Harmless when sent again. To add an index, add it to the table.
--
-- KEYS jobs         hash    run -> job record: head, options, task, arguments
-- KEYS runs         hash    run -> run record: state, claim, worker, times, counts
-- KEYS ids          hash    chosen id -> its newest run
-- KEYS named        hash    run -> its chosen id
-- KEYS pending      zset    run -> score: priority, then the time it became due
-- KEYS scheduled    zset    run -> time it falls due, and its priority
-- KEYS blocked      zset    run -> its pending score once released
-- KEYS processing   zset    run -> deadline of its lease, ms
-- KEYS completed    zset    run -> time it ended, ms
-- KEYS failed       zset    run -> time it ended, ms: the dead letters
-- KEYS cancelled    zset    run -> time it ended, ms
-- KEYS stopping     zset    run whose handler has yet to stop -> lease
-- KEYS expiring     zset    run with a start deadline -> that deadline, ms
-- KEYS locked       hash    unfinished run -> the lock it asked for
-- KEYS locks        hash    lock -> its occupant: the run that is pending or processing
-- KEYS follows      hash    follow-up -> the run that it waits for
-- KEYS results      hash    run -> encoded result, unless it is null
-- KEYS errors       hash    run -> its last error
-- KEYS history      hash    run -> changes of state that its record does not show
-- KEYS progress     hash    run -> progress of its attempt
-- KEYS waiters      hash    run -> clients that wait for its end
-- KEYS terms        hash    run -> the terms that it is found by
-- KEYS has_parents  set     runs that depend on others, while they wait for them
-- KEYS steps        set     runs that belong to a workflow
-- ARGV[1] queue
-- ARGV[2] inbox   prefix of the channels
-- ARGV[3] mode    "check" or "repair"
-- ARGV[4] index   its name
-- ARGV[5] cursor  "0" at first
-- ARGV[6] limit   how many entries, about
--
-- Returns the next cursor, "0" at the end; how many entries it has checked; then three for each problem: run, index,
-- and what is wrong, with "!" before what cannot be repaired

-- @include check_lock_of_run
-- @include enter_and_leave_lock_lane
-- @include format_integer
-- @include queue_key_prefix
-- @include record_repair
-- @include remove_runs_from_search_terms
-- @include report_index_problem
-- @include wake_idle_workers

local SORTED = {
  pending = K.pending, scheduled = K.scheduled, blocked = K.blocked, processing = K.processing,
  completed = K.completed, failed = K.failed, cancelled = K.cancelled, expiring = K.expiring, stopping = K.stopping,
}
local HASHED = {
  runs = K.runs, named = K.named, locked = K.locked, follows = K.follows, results = K.results, errors = K.errors,
  history = K.history, progress = K.progress, waiters = K.waiters, terms = K.terms,
}
local SETS = { has_parents = K.has_parents, steps = K.steps }

-- A run that was deleted while it was processing keeps its id and claim until its handler has stopped.
local function is_known(run)
  if index == "stopping" then return redis.call("HEXISTS", K.runs, run) == 1 end
  return redis.call("HEXISTS", K.jobs, run) == 1 or redis.call("ZSCORE", K.stopping, run)
end

local function entries()
  if SORTED[index] then return redis.call("ZSCAN", SORTED[index], cursor, "COUNT", limit), 2 end
  if SETS[index] then return redis.call("SSCAN", SETS[index], cursor, "COUNT", limit), 1 end
  local key = HASHED[index] or (index == "ids" and K.ids) or (index == "locks" and K.locks)
  return redis.call("HSCAN", key, cursor, "COUNT", limit), 2
end

local function remove(run)
  if SORTED[index] then
    redis.call("ZREM", SORTED[index], run)
  elseif SETS[index] then
    redis.call("SREM", SETS[index], run)
  elseif index == "terms" then
    remove_runs_from_search_terms({ run })
  else
    redis.call("HDEL", HASHED[index], run)
  end
end

local IS_JOB = { pending = true, scheduled = true, blocked = true, processing = true, runs = true }
local page, step = entries()
local checked, freed = 0, 0
for i = 1, #page[2], step do
  local entry, value = page[2][i], page[2][i + 1]
  checked = checked + 1
  if index == "locks" then
    -- The occupant has ended or is gone: the first of the lane takes the lock.
    if not may_occupy(value) and found_problem(value, index, "it holds the lock " .. entry .. ", and has ended") then
      freed = freed + leave_lane(value, entry)
    end
  elseif index == "ids" then
    if not is_known(value) and found_problem(value, index, "the id " .. entry .. " leads to it, and it is gone") then
      redis.call("HDEL", K.ids, entry)
    end
  elseif not is_known(entry) then
    local text = IS_JOB[index] and "its job record is gone, so that it cannot run" or "it is gone"
    if found_problem(entry, index, text) then remove(entry) end
  end
end
if #problems > 0 and mode == "repair" then
  record_repair(queue_key_prefix, "index " .. index, problems[1] .. " " .. problems[3])
end
wake_idle_workers(math.min(freed, 8))
return { page[1], format_integer(checked), problems }
