-- enqueue_plain: (none) -> pending
--
-- What `enqueue` does, for jobs of one task that have nothing to say but their arguments: due now, without an id, priority,
-- expiry, lock or terms of their own, and after no others. Most are like that and many come alone, so it names few keys,
-- defines few functions, and writes in a line what others gather: docs/decisions/0020 has the figures. Its calls are
-- numbered with those of `enqueue`: sent again, it makes nothing and says what the first one did.
--
-- KEYS meta     hash  counter `run`
-- KEYS jobs     hash  run -> record
-- KEYS pending  zset  run -> place
-- KEYS idle     zset  waiting workers
-- ARGV[1] queue
-- ARGV[2] inbox      prefix of the channels
-- ARGV[3] call       number of this call
-- ARGV[4] lines      options and task, as every record has them, with a line feed behind each
-- ARGV[5…] two for each job: a random suffix of eight characters, and its arguments
--
-- Returns the number before the first run made and the time, ms, with a blank between

-- @include emit_made
-- @include now_ms
-- @include replay
-- @include run_name
-- @include text_of
-- @rare hand_over_alone
-- @rare learn_page
-- @rare wake

local before = recall("enqueue", call)
if before then return before end

local amount, now = (#ARGV - 4) / 2, now_ms()
local first, at = tonumber(redis.call("HGET", meta, "run") or 0), text_of(now)
-- Tables that have room for one job from the start.
local head, records, places = " " .. at .. "\n" .. lines, { "", "" }, { "", "" }
for i = 1, amount do
  local run = run_name(first + i)
  records[2 * i - 1], records[2 * i] = run, ARGV[2 * i + 3] .. head .. ARGV[2 * i + 4]
  places[2 * i - 1], places[2 * i] = at, run
end
redis.call("HSET", jobs, unpack(records))
redis.call("ZADD", pending, unpack(places))
redis.call("HSET", meta, "run", first + amount)
emit_made(records[1], amount)

-- See `tally` and `column` for what follows.
local task, book_prefix, this_minute = string.match(lines, "\n(.*)\n"), string.sub(meta, 1, -5), math.floor(now / 60000)
local slot, minute = unpack(redis.call("HMGET", book_prefix .. "slots", task, " minute"))
if not slot or not minute or this_minute > tonumber(minute) then slot = learn_page(task, this_minute) end
redis.call("BITFIELD", book_prefix .. "tally", "INCRBY", "i64", (slot - 1) * 4096, amount)
local from = 1
while from <= amount do
  local offset, chunk = (first + from) % 1024, string.sub(records[2 * from - 1], 1, 7)
  local size = math.min(amount - from + 1, 1024 - offset)
  redis.call("SETRANGE", book_prefix .. "column:" .. chunk, offset, string.rep(string.char(slot), size))
  redis.call("HINCRBY", book_prefix .. "chunks", chunk, size)
  from = from + size
end
if redis.call("ZCARD", idle) > 0 then
  if amount == 1 then hand_over_alone(now) else wake(math.min(amount, 8)) end
end
local outcome = text_of(first) .. " " .. at
remember("enqueue", call, outcome)
return outcome
