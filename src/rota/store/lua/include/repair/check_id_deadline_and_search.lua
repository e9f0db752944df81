-- Checks what a run is found by (its chosen id, its task, its search terms), its start deadline, and the counters
-- that must be above its numbers.
-- @include add_and_remove_search_terms
-- @include add_run_to_task_index
-- @include assign_task_numbers
-- @include byte_offset_in_task_index
-- @include format_integer
-- @include format_run_number
-- @include group_dead_letters_by_error
-- @include now_ms
-- @include report_index_problem
-- @include start_deadline_of_job
-- @include task_of_job_record

local function check_id(run, f)
  if not f.id then return end
  if redis.call("HGET", K.named, run) ~= f.id and found_problem(run, "named", "its id is not known") then
    redis.call("HSET", K.named, run, f.id)
  end
  local newest = redis.call("HGET", K.ids, f.id)
  -- A generated id, chosen again later: it leads to the run that it was generated for.
  if not newest and redis.call("HEXISTS", K.jobs, string.sub(f.id, 1, 9)) == 1 then return end
  if newest and (newest == run or redis.call("HEXISTS", K.jobs, newest) == 1
    or redis.call("ZSCORE", K.stopping, newest)) then
    return
  end
  if found_problem(run, "ids", "its id does not lead to it") then redis.call("HSET", K.ids, f.id, run) end
end

local function check_deadline(run, f)
  if f.state ~= "waiting" or tonumber(f.r.attempt) > 0 then return end
  local deadline = start_deadline_of(f.record)
  if not deadline or redis.call("ZSCORE", K.expiring, run) then return end
  if found_problem(run, "expiring", "its start deadline is not watched") then
    redis.call("ZADD", K.expiring, format_integer(deadline), run)
  end
end

local function check_task_and_terms(run, f)
  local chunk = queue_counters.prefix .. "task_index:" .. string.sub(run, 1, 7)
  local byte = redis.call("GETRANGE", chunk, byte_offset_in_task_index(run), byte_offset_in_task_index(run))
  if (byte == "" or byte == "\0") and found_problem(run, "task_index", "it is not found by its task") then
    add_run_to_task_index(run, task_of_job_record(f.record))
  end
  local sizes, part = queue_counters.prefix .. "task_index_sizes", string.sub(run, 1, 7)
  if redis.call("HEXISTS", sizes, part) == 0
    and found_problem(run, "task_index_sizes", "its part is not counted") then
    redis.call("HSET", sizes, part, 0) -- `check_task_index` counts it
  end
  local words = redis.call("HGET", K.terms, run) or ""
  local known = " " .. words .. " "
  for word in string.gmatch(f.parts[C.OPTION_TERMS] or "", "%S+") do
    if not string.find(known, " " .. word .. " ", 1, true)
      and found_problem(run, "terms", "it is not found by " .. word) then
      index_terms(run, word)
    end
  end
  for word in string.gmatch(words, "%S+") do
    if not redis.call("ZSCORE", K.term .. ":" .. word, run)
      and found_problem(run, "term", "it is not found by " .. word) then
      redis.call("ZADD", K.term .. ":" .. word, 0, run)
    end
  end
  if f.state == "failed" and not string.find(known, " group=", 1, true)
    and found_problem(run, "terms", "it is in no group of dead letters") then
    group_dead_letters_by_error(run, redis.call("HGET", K.errors, run) or "{}", true, now_ms())
  end
  local err = redis.call("HGET", K.errors, run)
  if err and f.state ~= "failed" and not string.find(known, " error=", 1, true)
    and found_problem(run, "terms", "it is not found by its error") then
    group_dead_letters_by_error(run, err, false, now_ms())
  end
end

local function run_number(run)
  local number = 0
  for i = 1, #run do number = 32 * number + (string.find(DIGITS, string.sub(run, i, i), 1, true) or 1) - 1 end
  return number
end

local function check_counter(run, field, least)
  local value = tonumber(redis.call("HGET", K.meta, field) or 0)
  -- One that is no number is repaired by the next call that counts.
  if not value or value >= least then return end
  if found_problem(run, "meta", "the counter " .. field .. " is below its number") then
    redis.call("HSET", K.meta, field, format_integer(least))
  end
end

local function check_id_deadline_and_search(run, f)
  check_id(run, f)
  check_deadline(run, f)
  check_task_and_terms(run, f)
  check_counter(run, "run", run_number(run))
  local fence = f.state == "processing" and tonumber(string.match(f.r.claim, "^(%d+)%."))
  if fence then check_counter(run, "fence", fence) end
end
