-- fire: (none) -> blocked | pending
--
-- Makes the jobs of a schedule's ticks that are due, and sets its next tick, in one step. Only who names the tick that
-- the schedule is waiting for does anything, so that of any number of workers one fires it, and a call sent again
-- nothing. A tick that is not due by the server's clock is refused.
--
-- KEYS ids    hash  chosen id -> newest run
-- KEYS ticks  zset  schedule -> its next tick, ms
-- ARGV[1] queue
-- ARGV[2] inbox      prefix of the channels
-- ARGV[3] name
-- ARGV[4] revision   of the schedule that the caller read
-- ARGV[5] awaited    tick that the schedule is waiting for, ms
-- ARGV[6] following  tick to wait for then, ms; "" when there is none
-- ARGV[7] overlap    "queue", or "skip": no job while the one before has not ended
-- ARGV[8] dropped    ticks that were missed and are not run
-- ARGV[9] priority
-- ARGV[10] expiry    moment, or ""
-- ARGV[11…] two for each tick to run: tick, ms, and id of its job
--
-- Returns "fired", the number of jobs made and of ticks skipped | "moved" | "changed" | "early"

-- @include emit
-- @include now_ms
-- @include schedule
-- @include spawn
-- @include tally
-- @include text_of
-- @include unfinished
-- @include wake

local current = redis.call("ZSCORE", ticks, name)
if not current or tonumber(current) ~= tonumber(awaited) then return { "moved" } end
local state, rule, settings, body = read_schedule(name)
if not state or state.revision ~= tonumber(revision) then return { "changed" } end
local now = now_ms()
if tonumber(awaited) > now then return { "early" } end
for at = 11, #ARGV, 2 do
  if tonumber(ARGV[at]) > now then return { "early" } end
end

local made, freed, skipped = {}, 0, 0
for at = 11, #ARGV, 2 do
  local id = ARGV[at + 1]
  local is_busy = unfinished(state.last_id) or unfinished(state.manual_id)
  if overlap == "skip" and is_busy then
    skipped = skipped + 1
  else
    -- An id of this tick can only be there if the tick has been fired, before a clock was set back or data was lost.
    if not redis.call("HGET", ids, id) then
      local run, where = spawn(id, tonumber(priority), expiry, body, now)
      made[#made + 1] = run
      if where == "pending" then freed = freed + 1 end
    end
    state.last_id, state.last_tick = id, tonumber(ARGV[at])
  end
end

state.fired = state.fired + #made
state.skipped = state.skipped + skipped
state.dropped = state.dropped + dropped
write_schedule(name, state, rule, settings, body)
if following == "" then redis.call("ZREM", ticks, name) else redis.call("ZADD", ticks, following, name) end
emit("enqueue", made)
emit("fire", { name })
if freed > 0 then wake(math.min(freed, 8)) end
write_tally(now)
return { "fired", text_of(#made), text_of(skipped) }
