-- append_log: no change of state
--
-- Appends lines to the log of a run, up to 1,000 lines or 256 KiB; further lines are counted, and so are numbers
-- that were left out. Lines are numbered within the attempt, so a call sent again appends nothing. Only the attempt
-- that owns the run may write.
--
-- KEYS runs  hash    run -> run record: state, claim, worker, times, counts
-- KEYS logs  hash    run -> sequence, lines and bytes of its log
-- KEYS log   prefix  `log:…`: one run's log lines
-- ARGV[1] run
-- ARGV[2] claim
-- ARGV[3] first   number of the first line, within the claim
-- ARGV[4…] level and text, joined by a space, for each line
--
-- Returns "ok" | "lost"

-- @include emit_event
-- @include format_integer
-- @include now_ms
-- @include parse_and_format_run_record

if not is_claim(redis.call("HGET", K.runs, run), "processing", claim) then return "lost" end
local last_claim, last, lines, bytes, dropped =
  string.match(redis.call("HGET", K.logs, run) or "- 0 0 0 0", "^(%S+) (%d+) (%d+) (%d+) (%d+)$")
if last_claim ~= claim then last = 0 end
if not lines then lines, bytes, dropped = 0, 0, 0 end -- it is damaged
local now, new = format_integer(now_ms()), {}
for i = 4, #ARGV do
  local number = first + i - 4
  if number > tonumber(last) then
    dropped, last = dropped + (number - last - 1), number
    if lines + 1 > C.MAX_LOG_LINES or bytes + #ARGV[i] > C.MAX_LOG_BYTES then
      dropped = dropped + 1
    else
      lines, bytes = lines + 1, bytes + #ARGV[i]
      new[#new + 1] = now .. " " .. ARGV[i]
    end
  end
end
if #new > 0 then redis.call("RPUSH", K.log .. ":" .. run, unpack(new)) end
redis.call("HSET", K.logs, run, table.concat({ claim, last, lines, bytes, dropped }, " "))
if #new > 0 then emit_event("log", { run }) end
return "ok"
