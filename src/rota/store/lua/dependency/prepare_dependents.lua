-- prepare_dependents: no change of state
--
-- Prepares jobs that depend on others: writes them, not yet visible. They are registered with their parents next, in
-- whichever hash slots those are, and then `publish_prepared_runs` makes them visible. Jobs that are not published
-- within a minute are removed. An id with an unfinished run is not taken: `enqueue` decides about it. Sent again with
-- the same call number, it returns the first reply.
--
-- KEYS meta            hash  counters run, fence, totals; is_paused, server_seen, grace_until
-- KEYS jobs            hash  run -> job record: head, options, task, arguments
-- KEYS prepared        zset  run that is not yet visible -> since, ms
-- KEYS prepared_plans  hash  prepared run -> priority, due and expiry
-- KEYS ids             hash  chosen id -> its newest run
-- KEYS steps           set   runs that belong to a workflow
-- ARGV[1] call_number
-- ARGV[2] patience_ms  ms, beyond one minute, until unpublished jobs are removed
-- ARGV[3] kind    "step" of a workflow, or "job"
-- ARGV[4] max_payload  bytes that the arguments may have once the results of parents are in them
-- ARGV[5…] seven for each job: chosen id or "", random suffix, priority, due moment, expiry moment or "", rest of the
--          record, and its parents, see `write_parents_of_run`
--
-- Returns the number before the first run made, then the index of each job whose id has an unfinished run

-- @include find_unfinished_run_of_id
-- @include format_integer
-- @include format_new_job_record
-- @include format_run_number
-- @include last_run_number
-- @include now_ms
-- @include parse_time_argument
-- @include record_longest_job
-- @include replay_reply_of_numbered_call
-- @include write_parents_of_run

local before = recall_reply("prepare", call_number)
if before then return before == "" and { "0" } or cmsgpack.unpack(before) end

local now = now_ms()
local number = last_run_number()
local outcome, records, longest, at_text = { format_integer(number) }, {}, 0, format_integer(now)
for at = 5, #ARGV, 7 do
  local id, suffix, priority, due, expiry, rest, names = unpack(ARGV, at, at + 6)
  if id ~= "" and (find_unfinished_run_of_id(id) or (kind == "step" and redis.call("HEXISTS", K.ids, id) == 1)) then
    outcome[#outcome + 1] = format_integer((at - 5) / 7)
  else
    number = number + 1
    local run = format_run_number(number)
    local head = id ~= "" and "=" .. id or suffix
    local record = format_new_job_record(head, at_text, rest)
    records[#records + 1], records[#records + 2] = run, record
    longest = math.max(longest, #record)
    local ends = expiry ~= "" and format_integer(parse_time_argument(expiry, now)) or "-"
    local plan = { priority, format_integer(parse_time_argument(due, now)), ends }
    redis.call("HSET", K.prepared_plans, run, table.concat(plan, " "))
    redis.call("ZADD", K.prepared, format_integer(now + patience_ms), run)
    if kind == "step" then redis.call("SADD", K.steps, run) end
    write_parents_of_run(run, names, max_payload)
  end
end
if #records > 0 then redis.call("HSET", K.jobs, unpack(records)) end
record_longest_job(longest, K.jobs)
redis.call("HSET", K.meta, "run", format_integer(number))
remember_reply("prepare", call_number, cmsgpack.pack(outcome))
return outcome
