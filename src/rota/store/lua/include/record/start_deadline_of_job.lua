-- Returns the start deadline of a job from its record: the time by which it must have started for the first time, ms;
-- nil for none.
-- @include split_and_join_job_record

local function start_deadline_of(record)
  local head, options = split_job_record(record or "")
  local general = split_options(options)[C.OPTION_GENERAL]
  local at = string.match(general, '"expires_at":(%d+)')
  if at then return tonumber(at) end
  local lasts, since = string.match(general, '"expires_ms":(%d+)'), string.match(head or "", " (%d+)$")
  return lasts and since and since + lasts or nil
end
