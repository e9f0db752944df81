-- put_token: no change of state
--
-- Stores an API token. Sent again with the same token of the call, it changes nothing: by then the API token may have
-- been revoked.
--
-- KEYS tokens  hash  API token -> hash of its secret, role, queues, expiry
-- ARGV[1] id
-- ARGV[2] record  JSON
--
-- Returns "stored"

-- @include run_once_per_token

return run_once_per_token(function()
  redis.call("HSET", K.tokens, id, record)
  return "stored"
end)
