-- pause_or_resume_task: blocked -> blocked | pending
--
-- Pauses a task of a queue: claims set its runs aside instead of leasing them, and running attempts continue. Or
-- resumes it and puts back the first of its runs; claims put back the others, and a run whose lock is taken waits for
-- it. Sent again with the same token, it changes nothing: by then another call may have had the last word.
--
-- flags: allow-oom
-- KEYS meta          hash  counters run, fence, totals; is_paused, server_seen, grace_until
-- KEYS paused_tasks  hash  paused task -> since when, by whom and why; "resuming" while its runs are put back
-- ARGV[1] queue
-- ARGV[2] inbox   prefix of the channels
-- ARGV[3] wanted  "paused" or "open"
-- ARGV[4] task
-- ARGV[5] info    who pauses it and why, as JSON
-- ARGV[6] most    how many tasks may be paused at a time
-- ARGV[7] bound   how many runs it puts back
--
-- Returns "paused" | "full" | "open" | "more" if runs are left for claims to put back

-- @include emit_event
-- @include format_integer
-- @include now_ms
-- @include run_once_per_token
-- @include set_aside_runs_of_paused_tasks
-- @include wake_idle_workers

local function pause()
  local known = redis.call("HGET", K.paused_tasks, task)
  if known and known ~= "resuming" then return "paused" end
  if not known and redis.call("HLEN", K.paused_tasks) >= tonumber(most) then return "full" end
  redis.call("HSET", K.paused_tasks, task, format_integer(now_ms()) .. " " .. info)
  redis.call("HSET", K.meta, "has_paused_tasks", 1)
  emit_event("pause_task", { task })
  return "paused"
end

local function resume()
  if redis.call("HEXISTS", K.paused_tasks, task) == 0 then return "open" end
  redis.call("HSET", K.paused_tasks, task, "resuming")
  local is_more = put_back(task, tonumber(bound))
  emit_event("resume_task", { task })
  wake_idle_workers(8)
  return is_more and "more" or "open"
end

return run_once_per_token(wanted == "paused" and pause or resume)
