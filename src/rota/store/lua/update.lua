-- update: scheduled | blocked | pending | failed -> scheduled | blocked | pending | failed
--
-- Changes what a run that waits was asked for: its arguments, its priority, its time. Of a dead letter only the
-- arguments, for its next life. A record that is not as the caller has read it is left alone. Sent again with the same
-- token, it says what the first one did.
--
-- KEYS jobs  hash  run -> record
-- KEYS runs  hash  run -> what happened to it
-- ARGV[1] queue
-- ARGV[2] inbox     prefix of the channels
-- ARGV[3] id
-- ARGV[4] run       "" for the newest of the id
-- ARGV[5] seen      SHA-1 of the record as it was read
-- ARGV[6] flags     which parts are replaced, see the include `update`
-- ARGV[7] priority
-- ARGV[8] due       moment
-- ARGV[9] expiry    moment, or ""
-- ARGV[10] rest     of the record: options, task, arguments
--
-- Returns "updated" | "missing" | "changed" since it was read | "processing" | "ended" and how

-- @include emit
-- @include note
-- @include now_ms
-- @include once
-- @include overlay
-- @include resolve
-- @include update
-- @include wake

local function carry_out()
  local found = resolve(id, run)
  if not found then return "missing" end
  local line = redis.call("HGET", runs, found)
  local state = line and string.match(line, "^%S+") or "waiting"
  if state == "processing" then return "processing" end
  if state ~= "waiting" and state ~= "failed" then return "ended " .. state end
  local record = redis.call("HGET", jobs, found)
  if redis.sha1hex(record) ~= seen then return "changed" end

  local now = now_ms()
  if state == "failed" then
    redis.call("HSET", jobs, found, (overlay(record, rest, "d")))
    note(found, { at = now, verb = "update" })
  else
    -- One worker at least looks again: the next to fall due may be another one now.
    wake(math.max(1, update(found, flags, tonumber(priority), due, expiry, rest, now)))
  end
  emit("update", { found })
  return "updated"
end

return once(carry_out)
