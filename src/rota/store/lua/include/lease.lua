-- Leases runs that have just left `pending` to a worker, under one new fence.
-- keys: meta, jobs, runs, processing
-- @include count_started
-- @include emit
-- @include record
-- @include text_of

-- What a worker is told of a run's past: nothing at its first attempt.
local function counts_of(line)
  local counts = string.match(line, "^%S+ %S+ %S+ %S+ %S+ (%d+ %d+ %d+ %d+ %d+)")
  return counts == "1 0 0 0 0" and "" or counts
end

-- `popped` has run and place in turn. Returns the fence, the runs, and the counts and record of each.
local function lease(popped, owner, token, now, lasts_ms)
  local fence = text_of(redis.call("HINCRBY", meta, "fence", 1))
  local claim, at, deadline = fence .. "." .. token, text_of(now), text_of(now + lasts_ms)
  local claimed, counts, lines, leases = {}, {}, {}, {}
  for i = 1, #popped / 2 do claimed[i] = popped[2 * i - 1] end
  local earlier = redis.call("HMGET", runs, unpack(claimed))
  local bodies = redis.call("HMGET", jobs, unpack(claimed))
  local fresh = "processing " .. claim .. " " .. owner .. " " .. at .. " "
  local line, line_place
  for i = 1, #claimed do
    local run, run_place = claimed[i], popped[2 * i]
    if earlier[i] then
      local r = read_record(earlier[i])
      r.state, r.claim, r.worker, r.claimed_at, r.place = "processing", claim, owner, at, run_place
      r.attempt, r.ended_at, r.reason = r.attempt + 1, "-", ""
      line, line_place = write_record(r), nil
      counts[i] = counts_of(line)
    else
      -- Those that became due together have the same line.
      if run_place ~= line_place then line, line_place = fresh .. run_place .. " 1 0 0 0 0 - ", run_place end
      counts[i] = ""
    end
    lines[2 * i - 1], lines[2 * i] = run, line
    leases[2 * i - 1], leases[2 * i] = deadline, run
  end
  redis.call("HSET", runs, unpack(lines))
  redis.call("ZADD", processing, unpack(leases))
  emit("claim", claimed)
  count_started(popped, bodies, now)
  return fence, claimed, counts, bodies
end
