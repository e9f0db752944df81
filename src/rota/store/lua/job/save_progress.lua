-- save_progress: no change of state
--
-- Stores the progress of attempts. Only the attempt that owns a run may report it. A worker numbers its calls: one
-- that is sent again, or arrives late, changes nothing. A record is the time of the claim, the time of the report and
-- the number of its call, joined by a colon, what is done, the total and the note, separated by spaces.
--
-- flags: allow-oom
-- KEYS runs      hash  run -> run record: state, claim, worker, times, counts
-- KEYS progress  hash  run -> progress of its attempt
-- ARGV[1] number  of this call; grows with each call of the worker
-- ARGV[2…] five for each run: run, claim, done, total, note
--
-- Returns index and "lost" for each run that was refused

-- @include emit_event
-- @include format_integer
-- @include now_ms
-- @include parse_and_format_run_record

local now, refused, moved = now_ms(), {}, {}

-- True when the attempt that was claimed then has stored the progress of this call, or that of a later one.
local function is_known(run, claimed_at)
  local start, latest = string.match(redis.call("HGET", K.progress, run) or "", "^(%d+) %d+:(%d+) ")
  return start == claimed_at and tonumber(number) <= tonumber(latest)
end

for at = 2, #ARGV, 5 do
  local run, claim, done, total, note = unpack(ARGV, at, at + 4)
  local line = redis.call("HGET", K.runs, run)
  if is_claim(line, "processing", claim) then
    local claimed_at = parse_run_record(line).claimed_at
    if not is_known(run, claimed_at) then
      local reported = format_integer(now) .. ":" .. number
      redis.call("HSET", K.progress, run, table.concat({ claimed_at, reported, done, total, note }, " "))
      moved[#moved + 1] = run
    end
  else
    refused[#refused + 1] = format_integer((at - 2) / 5)
    refused[#refused + 1] = "lost"
  end
end
emit_event("progress", moved)
return refused
