-- apply_parent_outcomes: blocked | cancelled -> scheduled | blocked | pending | cancelled
--
-- Applies outcomes of parents to their dependents, in the hash slot of the dependents. A success brings a dependent
-- nearer to its start, any other outcome cancels it, and a redrive of the parent restores the dependents that it had
-- cancelled. Outcomes are numbered: a repeated or late one changes nothing.
--
-- flags: allow-oom
-- KEYS parents         prefix  `parents:…`: unmet parents of one run -> latest outcome number
-- KEYS failed_parents  prefix  `failed_parents:…`: parents that cancelled one run -> retention
-- ARGV[1] queue
-- ARGV[2] inbox   prefix of the channels
-- ARGV[3…] six for each: dependent, name of the parent, number of the outcome, outcome, retention of the parent (""
--          if it cannot be redriven), its result or "" for null
--
-- Returns how many of the outcomes it has handled: not all, if the first ones concern long jobs

-- @include collect_and_fill_parent_results
-- @include emit_event
-- @include format_integer
-- @include gather_and_write_counts
-- @include now_ms
-- @include read_job_record
-- @include release_cancel_or_restore_dependent
-- @include wake_idle_workers
-- @include write_outcomes_to_outbox

local now, freed, handled, restored = now_ms(), 0, 0, {}
for at = 3, #ARGV, 6 do
  if has_handled_enough() then break end
  handled = handled + 1
  local run, name, number, outcome, rule, result = unpack(ARGV, at, at + 5)
  local known = redis.call("HGET", K.parents .. ":" .. run, name)
  local flag, latest, placeholder = string.match(known or "", "^(.)(%-?%d+)=?(.*)$")
  if flag and tonumber(number) > tonumber(latest) then
    if outcome == "completed" or (flag == "?" and outcome ~= "waiting") then
      redis.call("HDEL", K.parents .. ":" .. run, name)
      if placeholder ~= "" then
        add_parent_result(run, placeholder, outcome == "completed" and result ~= "" and result or "null")
      end
      -- This outcome has overtaken that of the redrive.
      if redis.call("HDEL", K.failed_parents .. ":" .. run, name) > 0 and restore_dependent(run, now) then
        restored[#restored + 1] = run
      end
      freed = freed + release_if_ready(run, now)
    else
      local suffix = placeholder ~= "" and "=" .. placeholder or ""
      redis.call("HSET", K.parents .. ":" .. run, name, flag .. number .. suffix)
      if outcome == "waiting" then
        redis.call("HDEL", K.failed_parents .. ":" .. run, name)
        if restore_dependent(run, now) then restored[#restored + 1] = run end
      else
        redis.call("HSET", K.failed_parents .. ":" .. run, name, rule)
        cancel_dependent(run, name, now, rule)
      end
    end
  end
end
if #restored > 0 then
  emit_event("restore", restored)
  write_outcomes_to_outbox(restored, "waiting", now)
end
finish_cancelled_dependents(now)
wake_idle_workers(math.min(freed, 8))
write_counters(now)
return format_integer(handled)
