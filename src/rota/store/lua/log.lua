-- log: no change of state
--
-- Adds lines to a run's log, up to 1,000 lines or 256 KiB; what does not fit is counted. Lines are numbered by
-- attempt and position, so a call sent again adds nothing. Only the attempt that owns the run may write.
--
-- KEYS runs  hash    run -> what happened to it
-- KEYS logs  hash    run -> last line number, lines, bytes and dropped lines of its log
-- KEYS log   prefix  of one list per run, `log:<run>`
-- ARGV[1] run
-- ARGV[2] claim
-- ARGV[3] first   number of the first line, within the claim
-- ARGV[4…] level and text, joined by a space, for each line
--
-- Returns "ok" | "lost"

-- @include emit
-- @include now_ms
-- @include record
-- @include text_of

if not is_claim(redis.call("HGET", runs, run), "processing", claim) then return "lost" end
local MAX_LINES, MAX_BYTES = 1000, 262144
local last_claim, last, lines, bytes, dropped =
  string.match(redis.call("HGET", logs, run) or "- 0 0 0 0", "^(%S+) (%d+) (%d+) (%d+) (%d+)$")
if last_claim ~= claim then last = 0 end
local now, new = text_of(now_ms()), {}
for i = 4, #ARGV do
  local number = first + i - 4
  if number > tonumber(last) then
    last = number
    if lines + 1 > MAX_LINES or bytes + #ARGV[i] > MAX_BYTES then
      dropped = dropped + 1
    else
      lines, bytes = lines + 1, bytes + #ARGV[i]
      new[#new + 1] = now .. " " .. ARGV[i]
    end
  end
end
if #new > 0 then redis.call("RPUSH", log .. ":" .. run, unpack(new)) end
redis.call("HSET", logs, run, table.concat({ claim, last, lines, bytes, dropped }, " "))
if #new > 0 then emit("log", { run }) end
return "ok"
