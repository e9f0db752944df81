-- Takes runs from an owner that is gone. A stall is charged unless the owner lives and just never heard of this
-- claim (its reply was lost). Beyond its forgiven stalls, or where it may run only once, a run fails for good;
-- else it is pending again, at its old place. `owner` is "reports" where the owner itself says so: its claim stays in the
-- record, so that the report sent again is recognised. From an owner that is "gone" the claim is taken. What never started
-- was no attempt, and must still start by its deadline. `charge_of` says whether a stall is charged, and whether it never
-- started.
-- keys: jobs, runs, pending, processing, failed, expiring, locked, followers, errors, progress
-- @include alert
-- @include count_run
-- @include deadline
-- @include depart
-- @include emit
-- @include finish
-- @include group
-- @include note
-- @include policy
-- @include record
-- @include tally
-- @include text_of
-- @include wait_again

local function stall(lost, now, owner, charge_of)
  if #lost == 0 then return 0 end
  local failed_by_rule, back, released, lines, dead = {}, {}, {}, {}, {}
  local is_tied = redis.call("EXISTS", locked, followers) > 0
  for _, run in ipairs(lost) do
    local line = redis.call("HGET", runs, run)
    if line then
      local r = read_record(line)
      local options = policy(run)
      if owner == "gone" then r.claim = "-" end
      local charged, is_unstarted = charge_of(run, r)
      local task
      local entry = { at = now, verb = charged and "reap" or "return", worker = r.worker }
      if is_unstarted then
        r.attempt, r.claimed_at = math.max(0, r.attempt - 1), "-"
      else
        entry.attempt, entry.since = tonumber(r.attempt), tonumber(r.claimed_at)
      end
      if charged then
        r.stalls = r.stalls + 1
        task = count_run(run, "stalled")
      else
        r.handbacks = r.handbacks + 1
      end
      if charged and (options.at_most_once or r.stalls > options.max_stalls) then
        r.state, r.ended_at = "failed", text_of(now)
        r.reason = options.at_most_once and "its worker vanished, and it may run only once" or "its workers vanished too often"
        failed_by_rule[options.failed_rule] = failed_by_rule[options.failed_rule] or {}
        table.insert(failed_by_rule[options.failed_rule], run)
        dead[#dead + 1] = run
        count(task, "dead")
        local err = cjson.encode({
          kind = "stall", type = "StallError",
          message = "attempt " .. r.attempt .. " ended without a word: worker " .. r.worker .. " vanished (" .. r.reason .. ")",
        })
        redis.call("HSET", errors, run, err)
        group(run, err, true, now)
        entry.state = "failed"
      else
        r.state = "waiting"
        released[#released + 1] = run
        if is_tied then
          entry.state = wait_again(run, r, r.place, now)
        else
          back[#back + 1], back[#back + 2] = r.place, run
          entry.state = "pending"
        end
        local deadline = is_unstarted and r.attempt == 0 and deadline_of(redis.call("HGET", jobs, run))
        if deadline then redis.call("ZADD", expiring, text_of(deadline), run) end
      end
      lines[#lines + 1], lines[#lines + 2] = run, write_record(r)
      note(run, entry)
      redis.call("HDEL", progress, run)
    end
  end
  redis.call("ZREM", processing, unpack(lost))
  if #lines == 0 then return 0 end
  redis.call("HSET", runs, unpack(lines))
  if #back > 0 then redis.call("ZADD", pending, unpack(back)) end
  emit("reap", released)
  local alerted = alert(dead, now)
  local freed = depart(dead, "failed", now)
  finish(failed, "failed", failed_by_rule, now)
  return #released + alerted + freed
end
