-- read_demand: no change of state
--
-- Reads the demand of a queue for the planner: what is pending, what runs, and what falls due soon.
--
-- flags: no-writes
-- KEYS meta          hash  counters run, fence, totals; is_paused, server_seen, grace_until
-- KEYS pending       zset  run -> score: priority, then the time it became due
-- KEYS processing    zset  run -> deadline of its lease, ms
-- KEYS scheduled     zset  run -> time it falls due, and its priority
-- KEYS schedule_due  zset  schedule that is not paused -> its next tick, ms
-- KEYS outbox        zset  parent with an undelivered outcome -> when to send
-- ARGV[1] soon_ms  how far ahead what falls due is counted
--
-- Returns, separated by spaces: pending runs with a priority above normal; all pending runs; since when the next one
-- has been due, ms, or 0; runs being processed; runs, ticks and outcomes that fall due soon; 1 if it is paused, else
-- 0; the number of runs ever made

-- @include format_integer
-- @include now_ms
-- @include pending_score
-- @include scheduled_score

local soon = now_ms() + soon_ms
local head = redis.call("ZRANGE", K.pending, 0, 0, "WITHSCORES")[2]
local due = redis.call("ZCOUNT", K.scheduled, "-inf", format_integer(highest_score_due(soon)))
  + redis.call("ZCOUNT", K.schedule_due, "-inf", format_integer(soon))
  + redis.call("ZCARD", K.outbox)
return table.concat({
  redis.call("ZCOUNT", K.pending, "-inf", "(0"),
  redis.call("ZCARD", K.pending),
  head and format_integer(due_in_score(tonumber(head))) or "0",
  redis.call("ZCARD", K.processing),
  due,
  redis.call("HEXISTS", K.meta, "is_paused"),
  redis.call("HGET", K.meta, "run") or "0",
}, " ")
