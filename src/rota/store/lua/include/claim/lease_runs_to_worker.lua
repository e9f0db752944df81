-- Leases runs that have just left `pending` to a worker, under one new fence.
-- @include count_claims_and_waiting_times
-- @include emit_event
-- @include format_integer
-- @include increment_counter
-- @include parse_and_format_run_record

-- Returns the counts of a run for its worker: "" at its first attempt. The last one, how often its process died while
-- it also ran other jobs, is left out if there is none.
local function counts_of(line)
  local counts, crashes = string.match(line, "^%S+ %S+ %S+ %S+ %S+ (%d+ %d+ %d+ %d+ %d+) !?(%S+)")
  if counts and crashes ~= "-" then return counts .. " " .. crashes end
  return counts == "1 0 0 0 0" and "" or counts
end

-- `popped` has run and score in turn. Returns the fence, the runs, and the counts and record of each.
local function lease_runs_to_worker(popped, owner, token, now, lasts_ms)
  local fence = format_integer(increment_counter(K.meta, "fence", 1))
  local claim, at, deadline = fence .. "." .. token, format_integer(now), format_integer(now + lasts_ms)
  local claimed, counts, lines, leases = {}, {}, {}, {}
  for i = 1, #popped / 2 do claimed[i] = popped[2 * i - 1] end
  local earlier = redis.call("HMGET", K.runs, unpack(claimed))
  local bodies = redis.call("HMGET", K.jobs, unpack(claimed))
  local fresh = "processing " .. claim .. " " .. owner .. " " .. at .. " "
  local line, line_score
  for i = 1, #claimed do
    local run, run_score = claimed[i], popped[2 * i]
    if earlier[i] then
      local r = parse_run_record(earlier[i])
      r.state, r.claim, r.worker, r.claimed_at, r.score = "processing", claim, owner, at, run_score
      r.attempt, r.reason = r.attempt + 1, ""
      if string.sub(r.ended_at, 1, 1) ~= "!" then r.ended_at = "-" end
      line, line_score = format_run_record(r), nil
      counts[i] = counts_of(line)
    else
      -- Runs that became due together have the same record.
      if run_score ~= line_score then line, line_score = fresh .. run_score .. " 1 0 0 0 0 - ", run_score end
      counts[i] = ""
    end
    lines[2 * i - 1], lines[2 * i] = run, line
    leases[2 * i - 1], leases[2 * i] = deadline, run
  end
  redis.call("HSET", K.runs, unpack(lines))
  redis.call("ZADD", K.processing, unpack(leases))
  emit_event("claim", claimed)
  count_claims_and_waiting_times(popped, bodies, now)
  return fence, claimed, counts, bodies
end
