-- publish_tasks: no change of state
--
-- Publishes schemas and defaults of tasks. Sent again with the same token, it changes nothing: by then a worker with
-- newer code may have published others.
--
-- KEYS tasks  hash  task -> schema and defaults, as workers publish them
-- ARGV[1…] two for each: task, its schema and defaults
--
-- Returns "published"

-- @include run_once_per_token

return run_once_per_token(function()
  for at = 1, #ARGV, 2 do redis.call("HSET", K.tasks, ARGV[at], ARGV[at + 1]) end
  return "published"
end)
