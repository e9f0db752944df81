-- discard_prepared_runs: no change of state
--
-- Discards prepared runs that will not be published: removes them with all their data. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS prepared  zset  run that is not yet visible -> since, ms
-- ARGV[1…] runs
--
-- Returns "aborted"

-- @include remove_prepared_run

for _, run in ipairs(ARGV) do
  if redis.call("ZSCORE", K.prepared, run) then remove_prepared_run(run) end
end
return "aborted"
