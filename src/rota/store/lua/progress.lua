-- progress: no change of state
--
-- Keeps how far an attempt has come. Only the attempt that owns the run may say so. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS runs      hash  run -> what happened to it
-- KEYS progress  hash  run -> started_at, at, done, total and note
-- ARGV[1…] five for each run: run, claim, done, total, note
--
-- Returns index and "lost" for each run that was refused

-- @include emit
-- @include now_ms
-- @include record
-- @include text_of

local now, refused, moved = now_ms(), {}, {}
for at = 1, #ARGV, 5 do
  local run, claim, done, total, note = unpack(ARGV, at, at + 4)
  local line = redis.call("HGET", runs, run)
  if is_claim(line, "processing", claim) then
    local claimed_at = read_record(line).claimed_at
    redis.call("HSET", progress, run, table.concat({ claimed_at, text_of(now), done, total, note }, " "))
    moved[#moved + 1] = run
  else
    refused[#refused + 1] = text_of((at - 1) / 5)
    refused[#refused + 1] = "lost"
  end
end
emit("progress", moved)
return refused
