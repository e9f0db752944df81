-- add_parents_to_prepared_run: no change of state
--
-- Adds further parents to a prepared run, as one call can only carry so many. Sent again with the same token, it
-- changes nothing: by then a parent may have ended, and be none any more.
--
-- KEYS prepared  zset  run that is not yet visible -> since, ms
-- ARGV[1] run
-- ARGV[2] names        see `write_parents_of_run`
-- ARGV[3] max_payload
--
-- Returns "tied" | "missing"

-- @include format_integer
-- @include now_ms
-- @include run_once_per_token
-- @include write_parents_of_run

return run_once_per_token(function()
  if not redis.call("ZSCORE", K.prepared, run) then return "missing" end
  redis.call("ZADD", K.prepared, "GT", format_integer(now_ms()), run)
  write_parents_of_run(run, names, max_payload)
  return "tied"
end)
