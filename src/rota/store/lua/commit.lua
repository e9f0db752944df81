-- commit: (none) -> scheduled | blocked | pending | cancelled
--
-- Makes runs visible that were prepared and tied to their parents: each waits for those, or starts if they have all
-- succeeded meanwhile, or is cancelled if one of them never can. Sent again with the same token, it says what the first
-- one did: by then a run may have ended and be forgotten.
--
-- flags: allow-oom
-- KEYS jobs      hash    run -> record
-- KEYS ids       hash    chosen id -> newest run
-- KEYS named     hash    run -> chosen id
-- KEYS blocked   zset    run -> place
-- KEYS expiring  zset    run -> time it must have started by, ms
-- KEYS locked    hash    run -> its lock
-- KEYS unborn    zset    run -> since, ms
-- KEYS plans     hash    run -> priority, due and expiry
-- KEYS dooms     prefix  of one hash per run, `dooms:<run>`
-- KEYS steps     set     runs that belong to a workflow: their ids are used once
-- KEYS firsts    prefix  token -> the run that it made
-- ARGV[1] queue
-- ARGV[2] inbox     prefix of the channels
-- ARGV[3…] runs, each with "!" and a token behind it if it is to be made once
--
-- Returns "visible" | "missing" (it was swept) | "in_use" (its id, or its token, has been taken meanwhile) for each, joined
-- by spaces

-- @include doom
-- @include drop
-- @include emit
-- @include index_run
-- @include now_ms
-- @include once
-- @include parts
-- @include place
-- @include tally
-- @include text_of
-- @include unfinished
-- @include wake

local now, outcomes, made, freed = now_ms(), {}, {}, 0

local function commit_one(run, token)
  local record = redis.call("HGET", jobs, run)
  if not record then return "missing" end
  if not redis.call("ZSCORE", unborn, run) then return "visible" end
  local head, options = split_record(record)
  local id = string.match(head, "^=(%S+) ")
  local is_taken = id and redis.call("HEXISTS", ids, id) == 1 and redis.call("SISMEMBER", steps, run) == 1
  local is_made = token ~= "" and redis.call("EXISTS", firsts .. ":" .. token) == 1
  if is_taken or is_made or (id and unfinished(id)) then
    drop(run)
    return "in_use"
  end
  local priority, due, ends = string.match(redis.call("HGET", plans, run), "^(%S+) (%S+) (%S+)$")
  local lock = split_options(options)[6]
  if token ~= "" then redis.call("SET", firsts .. ":" .. token, run, "PX", 86400000) end
  redis.call("ZREM", unborn, run)
  redis.call("HDEL", plans, run)
  if id then
    redis.call("HSET", named, run, id)
    redis.call("HSET", ids, id, run)
  end
  if lock ~= "" then redis.call("HSET", locked, run, lock) end
  if ends ~= "-" then redis.call("ZADD", expiring, ends, run) end
  redis.call("ZADD", blocked, text_of(place(priority, due)), run)
  made[#made + 1] = run
  index_run(run, record)
  local cause = redis.call("HRANDFIELD", dooms .. ":" .. run, 1, "WITHVALUES")
  if cause[1] then
    doom(run, cause[1], now, cause[2])
  else
    freed = freed + untie(run, now)
  end
  return "visible"
end

local function commit()
  for at = 3, #ARGV do outcomes[#outcomes + 1] = commit_one(string.match(ARGV[at], "^(%w+)!?(.*)$")) end
  emit("enqueue", made)
  bury(now)
  if #made > 0 then wake(math.max(1, math.min(freed, 8))) end
  write_tally(now)
  return table.concat(outcomes, " ")
end

return once(commit)
