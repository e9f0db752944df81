-- Ends a run as cancelled: record, history, count and index. The caller has removed it from its previous index.
-- @include add_history_entry
-- @include count_event_of_run
-- @include format_integer
-- @include index_retain_and_announce_finished_runs
-- @include parse_and_format_run_record
-- @include stall_and_retention_policy_of_run

local function write_cancelled(run, r, reason, now)
  r.state, r.ended_at, r.reason = "cancelled", format_integer(now), string.gsub(reason, "\n", " ")
  redis.call("HSET", K.runs, run, format_run_record(r))
  count_event_of_run(run, "cancelled")
  add_history_entry(run, {
    at = now, verb = "cancel", state = "cancelled", worker = r.worker, attempt = tonumber(r.attempt),
    since = tonumber(r.claimed_at), note = reason,
  })
end

local function end_run_as_cancelled(run, r, reason, now)
  write_cancelled(run, r, reason, now)
  index_retain_and_announce_finished_runs(K.cancelled, "cancelled", { [policy_of(run).finished_rule] = { run } }, now)
end
