-- record_scaling_decision: no change of state
--
-- Stores the state of the pool after a planning round, and the decision if it is to be kept. A planner numbers its
-- rounds: one that is sent again, or arrives late, changes nothing.
--
-- KEYS planner            hash    the planner lease: fence, holder, until; the latest decision recorded
-- KEYS scaling_decisions  stream  decisions of the planner with their reasons, for 30 days
-- ARGV[1] fence    of the planner lease
-- ARGV[2] number   of the round; grows with each round of a holder
-- ARGV[3] state    of the pool, JSON
-- ARGV[4] entry    the decision, JSON; "" if it is not kept
--
-- Returns "recorded" | "fenced" (another planner has the lease)

-- @include emit_event
-- @include format_integer
-- @include holds_planner_lease
-- @include is_late_planner_call
-- @include now_ms

if not holds_planner_lease(fence) then return "fenced" end
if is_late_planner_call("round", fence, number) then return "recorded" end
redis.call("HSET", K.planner, "state", state)
if entry ~= "" then
  local oldest = format_integer(now_ms() - C.DECISIONS_KEPT_MS)
  redis.call("XADD", K.scaling_decisions, "MAXLEN", "~", C.DECISIONS_KEPT, "*", "decision", entry)
  redis.call("XTRIM", K.scaling_decisions, "MINID", "~", oldest)
  redis.call("HINCRBY", K.planner, "decisions", 1)
end
emit_event("scaling", { number })
return "recorded"
