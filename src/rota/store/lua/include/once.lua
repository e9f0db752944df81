-- A rare call carries a random token; its outcome is kept under it for the caller's retry window, so that the
-- call sent again changes nothing and hears what the first one did.
-- keys: call

local function once(carry_out)
  local outcome = redis.call("GET", call)
  if outcome then return outcome end
  outcome = carry_out()
  redis.call("SET", call, outcome, "PX", 600000)
  return outcome
end
