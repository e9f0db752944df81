-- Carries out a call once per random token. Its reply is kept under the token for the caller's retry window, so that
-- the call sent again changes nothing and returns the first reply.

local function run_once_per_token(carry_out)
  local outcome = redis.call("GET", K.reply)
  if outcome then return outcome end
  outcome = carry_out()
  redis.call("SET", K.reply, outcome, "PX", C.REPLY_KEPT_MS)
  return outcome
end
