-- enqueue_fast: (none) -> pending
--
-- Makes jobs of one task that have only arguments: due now, with no id, priority, expiry, lock, terms or parents.
-- Most jobs are like that and many come alone, so this script passes few keys, defines few functions and writes
-- directly what `enqueue` gathers first: docs/decisions/0020 has the measurements. Its calls are numbered together
-- with those of `enqueue`: sent again, it makes nothing and returns the first reply.
--
-- KEYS meta     hash  counters run, fence, totals; is_paused, server_seen, grace_until
-- KEYS jobs     hash  run -> job record: head, options, task, arguments
-- KEYS pending  zset  run -> score: priority, then the time it became due
-- KEYS idle     zset  worker that waits, and its next claim -> since
-- ARGV[1] queue
-- ARGV[2] inbox      prefix of the channels
-- ARGV[3] call_number
-- ARGV[4] lines      options and task lines that all records share
-- ARGV[5…] two for each job: a random suffix of eight characters, and its arguments
--
-- Returns the number before the first run made, a space, and the time, ms

-- @include emit_enqueue_event
-- @include format_integer
-- @include format_run_number
-- @include increment_counter
-- @include last_run_number
-- @include now_ms
-- @include queue_key_prefix
-- @include replay_reply_of_numbered_call
-- @rare number_new_task_or_start_new_minute
-- @rare record_longest_job
-- @rare push_job_to_idle_worker_and_count
-- @rare wake_idle_workers

local before = recall_reply("enqueue", call_number)
if before then return before end

local amount, now = (#ARGV - 4) / 2, now_ms()
local first, at = last_run_number(), format_integer(now)
-- What `write_counters` and `add_new_runs_to_task_index` do, for one task. The number is checked before anything is
-- written.
local task, this_minute = string.match(lines, "\n(.*)\n"), math.floor(now / 60000)
local number, minute = unpack(redis.call("HMGET", queue_key_prefix .. "task_numbers", task, " minute"))
number, minute = tonumber(number or nil), tonumber(minute or nil)
local is_valid = number and number >= 1 and number <= C.TASK_NUMBERS and number % 1 == 0
if not is_valid or minute ~= this_minute then
  number = number_new_task_or_start_new_minute(task, this_minute)
end
-- Tables with room for one job from the start.
local head, records, scores, longest = " " .. at .. "\n" .. lines, { "", "" }, { "", "" }, 0
for i = 1, amount do
  local run, record = format_run_number(first + i), ARGV[2 * i + 3] .. head .. ARGV[2 * i + 4]
  records[2 * i - 1], records[2 * i] = run, record
  scores[2 * i - 1], scores[2 * i] = at, run
  if #record > longest then longest = #record end
end
if longest > C.SHORT_RECORD then record_longest_job(longest, K.jobs) end
redis.call("HSET", K.jobs, unpack(records))
redis.call("ZADD", K.pending, unpack(scores))
redis.call("HSET", K.meta, "run", first + amount)
emit_enqueue_event(records[1], amount)
redis.call("BITFIELD", queue_key_prefix .. "counters", "INCRBY", "i64", (number - 1) * 4096, amount)
local from = 1
while from <= amount do
  local offset, chunk = (first + from) % 1024, string.sub(records[2 * from - 1], 1, 7)
  local size = math.min(amount - from + 1, 1024 - offset)
  redis.call("SETRANGE", queue_key_prefix .. "task_index:" .. chunk, offset, string.rep(string.char(number), size))
  increment_counter(queue_key_prefix .. "task_index_sizes", chunk, size)
  from = from + size
end
if redis.call("ZCARD", K.idle) > 0 then
  if amount == 1 then push_job_to_idle_worker_and_count(now) else wake_idle_workers(math.min(amount, 8)) end
end
local outcome = format_integer(first) .. " " .. at
remember_reply("enqueue", call_number, outcome)
return outcome
