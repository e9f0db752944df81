-- record_findings: no change of state
--
-- Records since when findings exist. One that has not been found for a while has ended: it and its acknowledgement
-- are forgotten. Sent again, it changes only when they were found last.
--
-- flags: allow-oom
-- KEYS findings          hash  finding -> since when, and when it was found last, ms
-- KEYS acknowledgements  hash  finding -> who acknowledged it, when, why and until when, JSON
-- ARGV[1] kept_ms   how long a finding is remembered that is not found any more
-- ARGV[2…] one for each finding: its key
--
-- Returns the time, ms; then the keys, times and acknowledgements of all remembered findings

-- @include format_integer
-- @include now_ms

local now = now_ms()
local at = format_integer(now)
for i = 2, #ARGV do
  local since = string.match(redis.call("HGET", K.findings, ARGV[i]) or "", "^(%d+) ") or at
  redis.call("HSET", K.findings, ARGV[i], since .. " " .. at)
end
local fields, reply = redis.call("HGETALL", K.findings), { at }
for i = 1, #fields, 2 do
  local last = tonumber(string.match(fields[i + 1], " (%d+)$") or "0")
  if now - last > tonumber(kept_ms) then
    redis.call("HDEL", K.findings, fields[i])
    redis.call("HDEL", K.acknowledgements, fields[i])
  else
    local n = #reply
    reply[n + 1], reply[n + 2] = fields[i], fields[i + 1]
    reply[n + 3] = redis.call("HGET", K.acknowledgements, fields[i]) or ""
  end
end
return reply
