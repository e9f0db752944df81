-- Returns the reason to refuse a report whose claim does not own its run: "missing", "cancelled" (by this claim's
-- owner or by request), "already" (this claim has reported, and the reply was lost), or "lease_lost".
-- @include parse_and_format_run_record

local function reason_to_refuse_report(line, claim)
  if not line then return "missing" end
  if is_claim(line, "cancelled", claim) then return "cancelled" end
  for _, state in ipairs({ "completed", "failed", "waiting" }) do
    if is_claim(line, state, claim) then return "already" end
  end
  return "lease_lost"
end
