-- What a run's record becomes when its id is enqueued again: the flags say which parts are replaced. d: arguments, tags
-- and meta; a: attempts; b: backoff; s: max_stalls; o: general options. A lock that is given replaces the old one. `deadline`
-- is by when it must have started if it gets the new options: as a time, for the head that it runs from stays the old one.
-- @include parts
-- @include text_of

local function overlay(record, rest, flags, deadline)
  local head, old, task, arguments = split_record(record)
  if not head then return record, "" end
  local _, new, _, new_arguments = split_record("\n" .. rest)
  local ours, theirs = split_options(old), split_options(new)
  local function take(flag, part)
    if string.find(flags, flag, 1, true) then ours[part] = theirs[part] end
  end
  take("o", 1)
  take("a", 2)
  take("b", 3)
  take("s", 4)
  take("d", 5)
  take("d", 8)
  if deadline then ours[1] = string.gsub(ours[1], '"expires_ms":%d+', '"expires_at":' .. text_of(deadline)) end
  if theirs[6] ~= "" then ours[6] = theirs[6] end
  if string.find(flags, "d", 1, true) then arguments = new_arguments end
  return table.concat({ head, join_options(ours), task, arguments }, "\n"), theirs[6]
end
