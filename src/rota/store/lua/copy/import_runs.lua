-- import_runs: no change of state
--
-- Restores runs of an export, each with all that was stored. A run that was processing is so again, without a worker:
-- it is reaped when its lease expires. A run that this export has restored before, or that is there, stays as it is.
-- Where another run has its number, it gets a new one. Harmless when sent again.
--
-- KEYS meta                hash    counters run, fence, totals; is_paused, server_seen, grace_until
-- KEYS jobs                hash    run -> job record: head, options, task, arguments
-- KEYS runs                hash    run -> run record: state, claim, worker, times, counts
-- KEYS ids                 hash    chosen id -> its newest run
-- KEYS named               hash    run -> its chosen id
-- KEYS prepared            zset    run that is not yet visible -> since, ms
-- KEYS prepared_plans      hash    prepared run -> priority, due and expiry
-- KEYS expiring            zset    run with a start deadline -> that deadline, ms
-- KEYS errors              hash    run -> its last error
-- KEYS results             hash    run -> encoded result, unless it is null
-- KEYS history             hash    run -> changes of state that its record does not show
-- KEYS logs                hash    run -> sequence, lines and bytes of its log
-- KEYS log                 prefix  `log:…`: one run's log lines
-- KEYS steps               set     runs that belong to a workflow
-- KEYS has_parents         set     runs that depend on others, while they wait for them
-- KEYS processing          zset    run -> deadline of its lease, ms
-- KEYS parents             prefix  `parents:…`: unmet parents of one run -> latest outcome number
-- KEYS failed_parents      prefix  `failed_parents:…`: parents that cancelled one run -> retention
-- KEYS parent_results      prefix  `parent_results:…`: results that go into the arguments of one run, by placeholder
-- KEYS has_dependents      set     runs that others depend on
-- KEYS dependents          prefix  `dependents:…`: one run's dependents -> latest outcome delivered
-- KEYS merged_from         hash    run -> the follow-ups merged into it
-- KEYS merged_into         hash    merged follow-up -> the run it became a part of
-- KEYS imported            prefix  `imported:…`: run of an export -> the run that it was restored as
-- ARGV[1] queue
-- ARGV[2] inbox           prefix of the channels
-- ARGV[3] mode            "repair"
-- ARGV[4] lease_ms        lease of a run that was processing
-- ARGV[5] export          id of the export
-- ARGV[6] least_run       the number of the newest run, as the export began
-- ARGV[7] least_fence     the newest fence
-- ARGV[8] least_outcome   the number of the newest outcome
-- ARGV[9…] nineteen for each run, as `core/export_line_codec.py` encodes them
--
-- Returns for each "imported" | "exists" | "again" | "in_use" | "blob" (one of its blobs is not there, or another
-- job has it), and its run here, separated by a space

-- @include add_follow_up_to_processing_run
-- @include blobs_in_record
-- @include can_take_blobs
-- @include check_id_deadline_and_search
-- @include check_lock_of_run
-- @include check_run_record
-- @include check_state_index
-- @include check_what_blocks_run
-- @include emit_event
-- @include find_unfinished_run_of_id
-- @include format_integer
-- @include format_run_number
-- @include gather_and_write_counts
-- @include increment_counter
-- @include is_external_blob
-- @include now_ms
-- @include read_run_with_indexes
-- @include record_longest_job
-- @include take_blobs
-- @include wake_idle_workers
-- @include write_outcomes_to_outbox

local CHECKS = {
  check_run_record, check_state_index, check_what_blocks_run, check_lock_of_run, check_id_deadline_and_search,
}
local WORDS_PER_RUN = 19
local now, freed, restored, reply, run_of = now_ms(), 0, {}, {}, {}
local memory = K.imported .. ":" .. export

-- Returns the run that it is restored as, its record, and why it is not restored.
local function place_of(run, record, state)
  local before = redis.call("HGET", memory, run)
  if before then return before, record, "again" end
  local head, there = string.match(record, "^[^\n]*"), redis.call("HGET", K.jobs, run)
  if there and string.match(there, "^[^\n]*") == head then return run, record, "exists" end
  local place = run
  if there then
    place = format_run_number(increment_counter(K.meta, "run", 1))
    local suffix, rest = string.match(record, "^(%w+)( .*)$")
    -- An id that was not chosen begins with its run: from now on it is one that was chosen.
    if suffix then record = "=" .. run .. "-" .. suffix .. rest end
  end
  local id = string.match(record, "^=(%S+) ")
  local is_unfinished = state == "waiting" or state == "processing"
  return place, record, nil, id, is_unfinished and id and find_unfinished_run_of_id(id)
end

-- Those in the user's own store are not part of an export.
local function can_take_blobs_here(record)
  for blob in string.gmatch(blobs_in_record(record), "%S+") do
    if not is_external_blob(blob) and not can_take_blobs(blob) then return false end
  end
  return true
end

local function set_field(key, run, value)
  if value ~= "" then redis.call("HSET", key, run, value) end
end

-- In parts: a call takes no more than a few thousand arguments.
local function set_fields(key, fields)
  for from = 1, #fields, 1000 do redis.call("HSET", key, unpack(fields, from, math.min(from + 999, #fields))) end
  return #fields > 0
end

-- Outcomes are numbered anew here, so what a parent reported last must not hide what it reports next.
local function restore_dependencies(run, parents, failed_parents, parent_results, dependents, merged)
  local fields = cjson.decode(parents)
  for i = 2, #fields, 2 do fields[i] = string.gsub(fields[i], "^(.)%-?%d+", "%1-1") end
  local is_dependent = set_fields(K.parents .. ":" .. run, fields)
  is_dependent = set_fields(K.failed_parents .. ":" .. run, cjson.decode(failed_parents)) or is_dependent
  is_dependent = set_fields(K.parent_results .. ":" .. run, cjson.decode(parent_results)) or is_dependent
  if is_dependent then redis.call("SADD", K.has_parents, run) end
  local after = cjson.decode(dependents)
  for i = 1, #after, 2 do redis.call("ZADD", K.dependents .. ":" .. run, "NX", 0, after[i]) end
  if #after > 0 then redis.call("SADD", K.has_dependents, run) end
  for other in string.gmatch(merged, "%S+") do redis.call("HSETNX", K.merged_into, other, run) end
  set_field(K.merged_from, run, merged)
  return #after > 0
end

local function restore(run, record, id, words)
  local line, index, score, plan, expiry = words[3], words[5], words[6], words[7], words[8]
  redis.call("HSET", K.jobs, run, record)
  record_longest_job(#record, K.jobs)
  set_field(K.runs, run, line)
  set_field(K.errors, run, words[9])
  set_field(K.results, run, words[10])
  set_field(K.history, run, words[11])
  set_field(K.logs, run, words[12])
  local log = cjson.decode(words[13])
  if #log > 0 then redis.call("RPUSH", K.log .. ":" .. run, unpack(log)) end
  local blobs = blobs_in_record(record)
  if blobs ~= "" then take_blobs(run, blobs) end
  if words[14] == "1" then redis.call("SADD", K.steps, run) end
  local has_dependents = restore_dependencies(run, words[15], words[16], words[17], words[18], words[19])
  if index == "prepared" then
    redis.call("ZADD", K.prepared, format_integer(now), run)
    set_field(K.prepared_plans, run, plan)
    return
  end
  local f = read_run_with_indexes(run, record)
  if id then
    redis.call("HSET", K.named, run, id)
    local is_unfinished = f.state == "waiting" or f.state == "processing"
    if is_unfinished or redis.call("HEXISTS", K.ids, id) == 0 then redis.call("HSET", K.ids, id, run) end
  end
  if expiry ~= "" and f.state == "waiting" then redis.call("ZADD", K.expiring, expiry, run) end
  if f.state == "waiting" and score ~= "" then f.scores[index] = score end
  freed = freed + put_into_state_index(run, f)
  for _, check in ipairs(CHECKS) do freed = freed + (check(run, read_run_with_indexes(run, record)) or 0) end
  if ENDED[f.state] and has_dependents then write_outcomes_to_outbox({ run }, f.state, now) end
end

for field, least in pairs({ run = least_run, fence = least_fence, outcome_number = least_outcome }) do
  local value = tonumber(redis.call("HGET", K.meta, field) or 0)
  if value and value < tonumber(least) then redis.call("HSET", K.meta, field, least) end
end
for at = 9, #ARGV, WORDS_PER_RUN do
  local words = { unpack(ARGV, at, at + WORDS_PER_RUN - 1) }
  local follows = string.match(words[7], "^follows (%S+)")
  local place, record, outcome, id, holder = place_of(words[1], words[2], words[4])
  if not outcome and holder then
    -- A follow-up belongs behind the run of its id that was restored just before it.
    local before = follows and (run_of[follows] or redis.call("HGET", memory, follows))
    if before ~= holder or not redis.call("ZSCORE", K.processing, holder) then outcome, place = "in_use", holder end
  end
  if not outcome and not can_take_blobs_here(record) then outcome = "blob" end
  if not outcome then
    if follows and holder then
      add_follow_up_to_processing_run(holder, place, string.match(words[7], "^follows %S+ (%S*)$") or "")
    end
    restore(place, record, id, words)
    restored[#restored + 1], outcome = place, "imported"
  end
  if outcome ~= "in_use" and outcome ~= "blob" then redis.call("HSET", memory, words[1], place) end
  if outcome ~= "blob" then run_of[words[1]] = place end
  reply[#reply + 1] = outcome .. " " .. place
end
redis.call("PEXPIRE", memory, C.REPAIRS_KEPT_MS)
emit_event("import", restored)
wake_idle_workers(math.min(freed, 8))
write_counters(now)
return reply
