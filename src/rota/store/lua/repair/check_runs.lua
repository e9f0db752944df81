-- check_runs: no change of state
--
-- Checks some runs of a queue, from a position of the hash of job records on: that records, indexes and counters
-- agree. In the mode "repair" it also repairs what does not, each run in one step. Harmless when sent again. To add
-- an index, add its check to CHECKS.
--
-- KEYS meta        hash    counters run, fence, totals; is_paused, server_seen, grace_until
-- KEYS jobs        hash    run -> job record: head, options, task, arguments
-- KEYS prepared    zset    run that is not yet visible -> since, ms
-- ARGV[1] queue
-- ARGV[2] inbox     prefix of the channels
-- ARGV[3] mode      "check" or "repair"
-- ARGV[4] cursor    "0" at first
-- ARGV[5] limit     how many runs, about
-- ARGV[6] lease_ms  lease of a run that was processing without one
--
-- Returns the next cursor, "0" at the end; how many runs it has checked; and three for each problem: run, index, and
-- what is wrong, with "!" before what cannot be repaired

-- @include add_history_entry
-- @include check_id_deadline_and_search
-- @include check_lock_of_run
-- @include check_run_record
-- @include check_state_index
-- @include check_what_blocks_run
-- @include emit_event
-- @include format_integer
-- @include gather_and_write_counts
-- @include now_ms
-- @include queue_key_prefix
-- @include read_run_with_indexes
-- @include record_repair
-- @include report_index_problem
-- @include wake_idle_workers

local CHECKS = {
  check_run_record, check_state_index, check_what_blocks_run, check_lock_of_run, check_id_deadline_and_search,
}

-- Where records are long, one call reads fewer.
local longest = tonumber(redis.call("HGET", K.meta, "longest_job") or 0) or 0
local amount = math.max(1, math.min(limit, math.floor(C.CALL_BYTES / math.max(1, longest))))
local page = redis.call("HSCAN", K.jobs, cursor, "COUNT", amount)
local now, freed, repaired, checked = now_ms(), 0, {}, 0
for i = 1, #page[2], 2 do
  local run, record = page[2][i], page[2][i + 1]
  if not redis.call("ZSCORE", K.prepared, run) then
    checked = checked + 1
    local before = #problems
    for _, check in ipairs(CHECKS) do
      freed = freed + (check(run, read_run_with_indexes(run, record)) or 0)
    end
    if #problems > before and mode == "repair" then
      repaired[#repaired + 1] = run
      local index, what = problems[before + 2], problems[before + 3]
      add_history_entry(run, { at = now, verb = "repair", note = index .. ": " .. what })
      record_repair(queue_key_prefix, "index " .. index, run .. " " .. what)
    end
  end
end
emit_event("repair", repaired)
wake_idle_workers(math.min(freed, 8))
write_counters(now)
return { page[1], format_integer(checked), problems }
