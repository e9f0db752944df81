-- acknowledge_finding: no change of state
--
-- Acknowledges a finding that exists, or takes the acknowledgement back. Sent again with the same token, it changes
-- nothing.
--
-- KEYS findings          hash  finding -> since when, and when it was found last, ms
-- KEYS acknowledgements  hash  finding -> who acknowledged it, when, why and until when, JSON
-- ARGV[1] finding
-- ARGV[2] record   JSON; "" takes it back
--
-- Returns "stored" | "missing"

-- @include run_once_per_token

return run_once_per_token(function()
  if record == "" then
    redis.call("HDEL", K.acknowledgements, finding)
    return "stored"
  end
  if redis.call("HEXISTS", K.findings, finding) == 0 then return "missing" end
  redis.call("HSET", K.acknowledgements, finding, record)
  return "stored"
end)
