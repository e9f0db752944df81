-- Writes new jobs: record, id, lock, start deadline, and entry in an index. A script adds jobs to a batch and writes
-- it with few commands, however many jobs. All jobs are made here, except those of `enqueue_fast`.
-- @rare enter_lock_lanes_in_batch
-- @rare record_longest_job

-- The keys are those of this queue or of its failure queue.
local function new_job_batch(jobs_key, pending_key)
  return {
    jobs_key = jobs_key, pending_key = pending_key, size = 0, due_count = 0, longest = 0,
    records = {}, names = {}, ids = {}, locks = {}, deadlines = {}, due = {}, scheduled = {}, entering = {},
  }
end

-- Adds what every job has. `record` is nil if it is written already, `id` nil if none was chosen, `lock` "" for none,
-- `deadline` nil for none.
local function add_job(batch, run, record, id, lock, deadline)
  local size = batch.size + 1
  batch.size = size
  if record then
    batch.records[2 * size - 1], batch.records[2 * size] = run, record
    if #record > batch.longest then batch.longest = #record end
  end
  if id then
    local names, ids = batch.names, batch.ids
    names[#names + 1], names[#names + 2] = run, id
    ids[#ids + 1], ids[#ids + 2] = id, run
  end
  if lock ~= "" then
    local locks = batch.locks
    locks[#locks + 1], locks[#locks + 2] = run, lock
  end
  if deadline then
    local deadlines = batch.deadlines
    deadlines[#deadlines + 1], deadlines[#deadlines + 2] = deadline, run
  end
end

-- The run is due: it becomes pending, unless its lock has an occupant that goes first.
local function add_due(batch, run, score, lock)
  if lock ~= "" then
    batch.entering[#batch.entering + 1] = { run, score, lock }
  else
    local count = batch.due_count + 1
    batch.due_count = count
    batch.due[2 * count - 1], batch.due[2 * count] = score, run
  end
end

local function add_scheduled(batch, run, score)
  local scheduled = batch.scheduled
  scheduled[#scheduled + 1], scheduled[#scheduled + 2] = score, run
end

-- Writes and empties the batch. Returns how many runs became pending.
local function write_new_jobs(batch)
  if batch.size == 0 then return 0 end
  if #batch.records > 0 then redis.call("HSET", batch.jobs_key, unpack(batch.records)) end
  if batch.longest > C.SHORT_RECORD then record_longest_job(batch.longest, batch.jobs_key) end
  if #batch.ids > 0 then
    redis.call("HSET", K.named, unpack(batch.names))
    redis.call("HSET", K.ids, unpack(batch.ids))
  end
  if #batch.deadlines > 0 then redis.call("ZADD", K.expiring, unpack(batch.deadlines)) end
  if batch.due_count > 0 then redis.call("ZADD", batch.pending_key, unpack(batch.due)) end
  if #batch.scheduled > 0 then redis.call("ZADD", K.scheduled, unpack(batch.scheduled)) end
  if #batch.locks > 0 then redis.call("HSET", K.locked, unpack(batch.locks)) end
  local became_pending = batch.due_count
  if #batch.entering > 0 then became_pending = became_pending + enter_lock_lanes_in_batch(batch.entering) end
  batch.size, batch.due_count = 0, 0
  batch.records, batch.names, batch.ids, batch.locks = {}, {}, {}, {}
  batch.deadlines, batch.due, batch.scheduled, batch.entering = {}, {}, {}, {}
  return became_pending
end
