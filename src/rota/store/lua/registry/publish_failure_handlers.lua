-- publish_failure_handlers: no change of state
--
-- Publishes which tasks have a failure handler, and which no longer have one. Sent again with the same token, it
-- changes nothing: by then a worker with newer code may have published others.
--
-- KEYS failure_handlers  hash  task -> options of the job that handles a failure
-- ARGV[1] removed  how many of the tasks that follow have none
-- ARGV[2…] those tasks; then two for each that has one: task, options of the job
--
-- Returns "published"

-- @include run_once_per_token

return run_once_per_token(function()
  local first = 2 + removed
  for at = 2, first - 1 do redis.call("HDEL", K.failure_handlers, ARGV[at]) end
  for at = first, #ARGV, 2 do redis.call("HSET", K.failure_handlers, ARGV[at], ARGV[at + 1]) end
  return "published"
end)
