-- count_failed_login: no change of state
--
-- Counts a failed login from an address; the count is kept for a limited time after the first. Sent again with the
-- same token, it counts nothing and returns the first reply.
--
-- flags: allow-oom
-- KEYS login_failures  prefix  `login_failures:…`: failed logins from one address
-- ARGV[1] address
-- ARGV[2] kept_ms
--
-- Returns how many there were

-- @include format_integer
-- @include run_once_per_token

return run_once_per_token(function()
  local key = K.login_failures .. ":" .. address
  local count = redis.call("INCR", key)
  if count == 1 then redis.call("PEXPIRE", key, kept_ms) end
  return format_integer(count)
end)
