-- Why a report about a run is refused. "already": this very claim reported before, and only its answer was lost. A run
-- that was cancelled or deleted while its handler ran is released here: the report says that the handler has stopped.
-- @include record
-- @include release
-- @include wake

local function refusal(run, line, claim, now)
  if not line then return "missing" end
  if is_claim(line, "cancelled", claim) then
    wake(release(run, now))
    return "cancelled"
  end
  for _, state in ipairs({ "completed", "failed", "waiting" }) do
    if is_claim(line, state, claim) then return "already" end
  end
  return "lease_lost"
end
