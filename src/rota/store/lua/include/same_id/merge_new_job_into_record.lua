-- Merges a new job into the record of an existing run. The flags name the parts to replace. A given lock always
-- replaces the old one. `deadline` is the start deadline under the new options, as a time: the head with the enqueue
-- time stays.
-- @include format_integer
-- @include split_and_join_job_record

local function has_flag(flags, flag)
  return string.find(flags, flag, 1, true) ~= nil
end

local function merge_new_job_into_record(record, rest, flags, deadline)
  local head, old, task, arguments_at = split_job_record(record)
  if not head then return record, "" end
  -- Without its head.
  local _, new, _, new_arguments_at = split_job_record("\n" .. rest)
  local ours, theirs = split_options(old), split_options(new)
  local function take(flag, part)
    if has_flag(flags, flag) then ours[part] = theirs[part] end
  end
  take(C.FLAG_OPTIONS, C.OPTION_GENERAL)
  take(C.FLAG_ATTEMPTS, C.OPTION_ATTEMPTS)
  take(C.FLAG_BACKOFF, C.OPTION_BACKOFF)
  take(C.FLAG_MAX_STALLS, C.OPTION_MAX_STALLS)
  take(C.FLAG_DATA, C.OPTION_METADATA)
  take(C.FLAG_DATA, C.OPTION_TERMS)
  take(C.FLAG_DATA, C.OPTION_BLOBS)
  if deadline then
    local expires_at = '"expires_at":' .. format_integer(deadline)
    ours[C.OPTION_GENERAL] = string.gsub(ours[C.OPTION_GENERAL], '"expires_ms":%d+', expires_at)
  end
  local lock = theirs[C.OPTION_LOCK]
  if lock ~= "" then ours[C.OPTION_LOCK] = lock end
  local arguments = has_flag(flags, C.FLAG_DATA) and string.sub(rest, new_arguments_at - 1)
    or string.sub(record, arguments_at)
  return table.concat({ head, join_options(ours), task, arguments }, "\n"), lock
end
