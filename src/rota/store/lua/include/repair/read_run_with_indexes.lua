-- Reads a run for its checks: its records, and the state indexes that it is in. Its state is that of its run record;
-- where that is missing or damaged, the indexes tell.
-- @include parse_and_format_run_record
-- @include read_fields_of_run_record
-- @include split_and_join_job_record

local STATE_INDEXES = {
  pending = K.pending, scheduled = K.scheduled, blocked = K.blocked, processing = K.processing,
  completed = K.completed, failed = K.failed, cancelled = K.cancelled,
}
local WAITING = { pending = true, scheduled = true, blocked = true }
local STATES_OF_RECORDS = { waiting = true, processing = true, completed = true, failed = true, cancelled = true }

local function read_run_with_indexes(run, record)
  local line = redis.call("HGET", K.runs, run)
  local head, options = split_job_record(record)
  local f = { record = record, head = head, parts = split_options(options), line = line, scores = {} }
  local indexed_as = "waiting"
  for name, key in pairs(STATE_INDEXES) do
    f.scores[name] = redis.call("ZSCORE", key, run) or nil
    if f.scores[name] and not WAITING[name] and indexed_as ~= "processing" then indexed_as = name end
  end
  f.lock = f.parts[C.OPTION_LOCK]
  f.id = head and string.match(head, "^=(%S+) ")
  f.has_record = line and string.match(line, RECORD) and STATES_OF_RECORDS[state_in_record(line)]
  f.state = f.has_record and state_in_record(line) or indexed_as
  f.r = f.has_record and parse_run_record(line) or new_run_record(f.state, "0")
  return f
end
