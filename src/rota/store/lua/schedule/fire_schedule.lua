-- fire_schedule: (none) -> blocked | pending
--
-- Makes the jobs of a schedule's due ticks and sets its next tick, in one step. Only a call that names the tick which
-- the schedule is waiting for does anything: of any number of workers one fires it, and a call sent again does
-- nothing. A tick that is not due by the server's clock is refused.
--
-- KEYS ids           hash  chosen id -> its newest run
-- KEYS schedule_due  zset  schedule that is not paused -> its next tick, ms
-- ARGV[1] queue
-- ARGV[2] inbox      prefix of the channels
-- ARGV[3] name
-- ARGV[4] revision   of the schedule that the caller read
-- ARGV[5] awaited    tick that the schedule waits for, ms
-- ARGV[6] following  next tick, ms; "" for none
-- ARGV[7] overlap    "queue", or "skip": no job while the previous one is unfinished
-- ARGV[8] dropped    missed ticks that are not run
-- ARGV[9] priority
-- ARGV[10] expiry    moment, or ""
-- ARGV[11…] two for each tick to run: tick, ms, and id of its job
--
-- Returns "fired", the number of jobs made and of ticks skipped | "moved" | "changed" | "early"

-- @include emit_event
-- @include enqueue_job_of_schedule
-- @include find_unfinished_run_of_id
-- @include format_integer
-- @include gather_and_write_counts
-- @include now_ms
-- @include read_and_write_schedule_record
-- @include wake_idle_workers

local current = redis.call("ZSCORE", K.schedule_due, name)
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
  local is_busy = find_unfinished_run_of_id(state.last_id) or find_unfinished_run_of_id(state.manual_id)
  if overlap == "skip" and is_busy then
    skipped = skipped + 1
  else
    -- The id exists only if the tick was fired before, and a clock was set back or data was lost since.
    if not redis.call("HGET", K.ids, id) then
      local run, became_pending = enqueue_job_of_schedule(id, tonumber(priority), expiry, body, now)
      made[#made + 1] = run
      freed = freed + became_pending
    end
    state.last_id, state.last_tick = id, tonumber(ARGV[at])
  end
end

state.fired = state.fired + #made
state.skipped = state.skipped + skipped
state.dropped = state.dropped + dropped
write_schedule(name, state, rule, settings, body)
if following == "" then
  redis.call("ZREM", K.schedule_due, name)
else
  redis.call("ZADD", K.schedule_due, following, name)
end
emit_event("enqueue", made)
emit_event("fire_schedule", { name })
if freed > 0 then wake_idle_workers(math.min(freed, 8)) end
write_counters(now)
return { "fired", format_integer(#made), format_integer(skipped) }
