-- deliver: blocked | cancelled -> scheduled | blocked | pending | cancelled
--
-- In the slot of the dependents: news of jobs that they come after. Success brings them nearer to their start, any other
-- end cancels them, and a redrive of the cause brings back those that it had cancelled. News is numbered, so that what
-- comes twice or late changes nothing.
--
-- flags: allow-oom
-- KEYS needs  prefix  of one hash per run, `needs:<run>`
-- KEYS dooms  prefix  of one hash per run, `dooms:<run>`
-- ARGV[1] queue
-- ARGV[2] inbox   prefix of the channels
-- ARGV[3…] six for each: dependent, what it calls the parent, number of the news, outcome, how long the parent is kept
--          for a redrive ("" if none can bring it back), its result or "" for null
--
-- Returns how many were told

-- @include bequeath
-- @include doom
-- @include emit
-- @include fill
-- @include now_ms
-- @include tally
-- @include text_of
-- @include wake

local now, freed, told, revived, filled = now_ms(), 0, 0, {}, {}
for at = 3, #ARGV, 6 do
  local run, name, number, outcome, rule, result = unpack(ARGV, at, at + 5)
  local flag, latest, token = string.match(redis.call("HGET", needs .. ":" .. run, name) or "", "^(.)(%-?%d+)=?(.*)$")
  if flag and tonumber(number) > tonumber(latest) then
    told = told + 1
    if outcome == "completed" or (flag == "?" and outcome ~= "waiting") then
      redis.call("HDEL", needs .. ":" .. run, name)
      if token ~= "" then
        filled[run] = filled[run] or {}
        filled[run]['"' .. token .. '"'] = outcome == "completed" and result ~= "" and result or "null"
      end
      -- The news that it had been redriven was overtaken by this.
      if redis.call("HDEL", dooms .. ":" .. run, name) > 0 and revive(run, now) then
        revived[#revived + 1] = run
      end
      freed = freed + untie(run, now)
    else
      redis.call("HSET", needs .. ":" .. run, name, flag .. number .. (token ~= "" and "=" .. token or ""))
      if outcome == "waiting" then
        redis.call("HDEL", dooms .. ":" .. run, name)
        if revive(run, now) then revived[#revived + 1] = run end
      else
        redis.call("HSET", dooms .. ":" .. run, name, rule)
        doom(run, name, now, rule)
      end
    end
  end
end
if #revived > 0 then
  emit("revive", revived)
  bequeath(revived, "waiting", now)
end
bury(now)
for run, of_run in pairs(filled) do fill(run, of_run) end
wake(math.min(freed, 8))
write_tally(now)
return text_of(told)
