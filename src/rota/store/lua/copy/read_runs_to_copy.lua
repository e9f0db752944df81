-- read_runs_to_copy: no change of state
--
-- Reads all that is stored about some runs, to be written into an export or a mirror: those from a position of the
-- hash of job records on, or those that are named. A follow-up comes with the run before it, both as of one moment.
--
-- flags: no-writes
-- KEYS meta                hash    counters run, fence, totals; is_paused, server_seen, grace_until
-- KEYS jobs                hash    run -> job record: head, options, task, arguments
-- KEYS prepared            zset    run that is not yet visible -> since, ms
-- KEYS prepared_plans      hash    prepared run -> priority, due and expiry
-- KEYS expiring            zset    run with a start deadline -> that deadline, ms
-- KEYS errors              hash    run -> its last error
-- KEYS results             hash    run -> encoded result, unless it is null
-- KEYS history             hash    run -> changes of state that its record does not show
-- KEYS logs                hash    run -> sequence, lines and bytes of its log
-- KEYS log                 prefix  `log:…`: one run's log lines
-- KEYS steps               set     runs that belong to a workflow
-- KEYS parents             prefix  `parents:…`: unmet parents of one run -> latest outcome number
-- KEYS failed_parents      prefix  `failed_parents:…`: parents that cancelled one run -> retention
-- KEYS parent_results      prefix  `parent_results:…`: results that go into the arguments of one run, by placeholder
-- KEYS dependents          prefix  `dependents:…`: one run's dependents -> latest outcome delivered
-- KEYS follows             hash    follow-up -> the run that it waits for
-- KEYS merged_from         hash    run -> the follow-ups merged into it
-- KEYS blobs               hash    run -> its blobs, separated by spaces
-- ARGV[1] cursor  "0" at first; "" if the runs are given
-- ARGV[2] limit   how many runs, about
-- ARGV[3…] ids or runs, if they are given
--
-- Returns the next cursor, or how many of the given were read; then for each run all that is stored, as
-- `core/export_line_codec.py` names it

-- @include find_and_detach_follow_up
-- @include find_run_by_id
-- @include read_job_record
-- @include read_run_with_indexes

local reply = {}

local function read_one(run, record, flags)
  local f = read_run_with_indexes(run, record)
  local index, score = "", ""
  for name, at in pairs(f.scores) do index, score = name, at end
  local since = redis.call("ZSCORE", K.prepared, run)
  if since then index, score = "prepared", since end
  local function field(key) return redis.call("HGET", key, run) or "" end
  local function hash(key) return redis.call("HGETALL", key .. ":" .. run) end
  local result, log = field(K.results), redis.call("LRANGE", K.log .. ":" .. run, 0, -1)
  bytes_handled = bytes_handled + #record + #result + #table.concat(log)
  reply[#reply + 1] = {
    run, record, f.line or "", f.state, index, score, field(K.prepared_plans),
    redis.call("ZSCORE", K.expiring, run) or "", field(K.errors), result, field(K.history), field(K.logs), log,
    redis.call("SISMEMBER", K.steps, run), hash(K.parents), hash(K.failed_parents), hash(K.parent_results),
    redis.call("ZRANGE", K.dependents .. ":" .. run, 0, -1, "WITHSCORES"), field(K.follows), flags or "",
    field(K.merged_from), field(K.blobs),
  }
end

local function read_with_follow_up(run)
  local record = redis.call("HGET", K.jobs, run)
  if not record then return end
  local holder = redis.call("HGET", K.follows, run)
  -- It is read with its holder.
  if cursor ~= "" and holder and redis.call("HEXISTS", K.jobs, holder) == 1 then return end
  if cursor == "" and holder and redis.call("HEXISTS", K.jobs, holder) == 1 then run = holder end
  read_one(run, redis.call("HGET", K.jobs, run))
  local following, flags = follow_up_of(run)
  local its_record = following and redis.call("HGET", K.jobs, following)
  if its_record then read_one(following, its_record, flags) end
end

if cursor == "" then
  local done = 0
  for at = 3, #ARGV do
    if has_handled_enough() then break end
    done = done + 1
    local run = redis.call("HEXISTS", K.jobs, ARGV[at]) == 1 and ARGV[at] or find_run_by_id(ARGV[at], "")
    if run then read_with_follow_up(run) end
  end
  return { tostring(done), unpack(reply) }
end
-- Where records are long, one call reads fewer.
local longest = tonumber(redis.call("HGET", K.meta, "longest_job") or 0) or 0
local amount = math.max(1, math.min(limit, math.floor(C.CALL_BYTES / math.max(1, longest))))
local page = redis.call("HSCAN", K.jobs, cursor, "COUNT", amount)
for i = 1, #page[2], 2 do read_with_follow_up(page[2][i]) end
return { page[1], unpack(reply) }
