-- take_outbox: no change of state
--
-- Takes outcomes out of the outbox for delivery, for a limited time: after that another worker may take them.
-- Harmless when sent again.
--
-- flags: allow-oom
-- KEYS outbox           zset    parent with an undelivered outcome -> when to send
-- KEYS dependents       prefix  `dependents:…`: one run's dependents -> latest outcome delivered
-- KEYS outcomes         hash    parent -> number and kind of its latest outcome
-- KEYS outcome_results  hash    parent with an undelivered outcome -> its result
-- ARGV[1] limit    how many dependents
-- ARGV[2] hold_ms  how long no other worker may take it
-- ARGV[3] whose    "free": only what is not taken; "all": also what is, for a caller that needs all delivered
--
-- Returns "more" if it has not examined the whole outbox, else "done"; then parent, number, outcome, attempts,
-- retention for a redrive, result, and dependents joined by newlines, for each

-- @include format_integer
-- @include now_ms
-- @include read_job_record
-- @include remove_delivered_parent_from_outbox
-- @include retention_of_redrivable_run

local MOST = 50
local now, left, reply = now_ms(), tonumber(limit), { "done" }
local upto = whose == "all" and "+inf" or format_integer(now)
local examined = redis.call("ZRANGE", K.outbox, "-inf", upto, "BYSCORE", "LIMIT", 0, MOST)
if #examined == MOST then reply[1] = "more" end
for _, run in ipairs(examined) do
  if has_handled_enough() then reply[1] = "more" end
  if left <= 0 or has_handled_enough() then break end
  local number, outcome, attempts = string.match(redis.call("HGET", K.outcomes, run) or "", "^(%d+) (%a+) (%d+)$")
  local untold = number
    and redis.call("ZRANGE", K.dependents .. ":" .. run, "-inf", "(" .. number, "BYSCORE", "LIMIT", 0, left) or {}
  if #untold == 0 then
    remove_delivered_parent_from_outbox(run)
  else
    redis.call("ZADD", K.outbox, format_integer(now + hold_ms), run)
    left = left - #untold
    local result = redis.call("HGET", K.outcome_results, run) or ""
    bytes_handled = bytes_handled + #result
    local retention, dependents = retention_of_redrivable_run(run, outcome), table.concat(untold, "\n")
    for _, word in ipairs({ run, number, outcome, attempts, retention, result, dependents }) do
      reply[#reply + 1] = word
    end
  end
end
return reply
