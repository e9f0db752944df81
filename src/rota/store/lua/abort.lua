-- abort: no change of state
--
-- Drops runs that were prepared and shall not be: nothing of them is left. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS unborn  zset  run -> since, ms
-- ARGV[1…] runs
--
-- Returns "aborted"

-- @include drop

for _, run in ipairs(ARGV) do
  if redis.call("ZSCORE", unborn, run) then drop(run) end
end
return "aborted"
