-- Releases the next runs, if any wait for runs that have ended (and have no handler running): few runs have
-- dependents, a lock or a follow-up, so this is checked first. Returns how many runs became pending. Called before
-- `index_retain_and_announce_finished_runs`, which may remove the runs.
-- @rare notify_dependents_and_release_next_runs

local function release_next_runs_if_any_wait(gone, outcome, now)
  if #gone == 0 or redis.call("EXISTS", K.has_dependents, K.locked, K.follow_ups) == 0 then return 0 end
  return notify_dependents_and_release_next_runs(gone, outcome, now)
end
