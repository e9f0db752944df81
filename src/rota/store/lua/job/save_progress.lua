-- save_progress: no change of state
--
-- Stores the progress of attempts. Only the attempt that owns a run may report it. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS runs      hash  run -> run record: state, claim, worker, times, counts
-- KEYS progress  hash  run -> progress of its attempt
-- ARGV[1…] five for each run: run, claim, done, total, note
--
-- Returns index and "lost" for each run that was refused

-- @include emit_event
-- @include format_integer
-- @include now_ms
-- @include parse_and_format_run_record

local now, refused, moved = now_ms(), {}, {}
for at = 1, #ARGV, 5 do
  local run, claim, done, total, note = unpack(ARGV, at, at + 4)
  local line = redis.call("HGET", K.runs, run)
  if is_claim(line, "processing", claim) then
    local claimed_at = parse_run_record(line).claimed_at
    redis.call("HSET", K.progress, run, table.concat({ claimed_at, format_integer(now), done, total, note }, " "))
    moved[#moved + 1] = run
  else
    refused[#refused + 1] = format_integer((at - 1) / 5)
    refused[#refused + 1] = "lost"
  end
end
emit_event("progress", moved)
return refused
