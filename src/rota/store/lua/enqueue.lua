-- enqueue: (none) -> scheduled | blocked | pending
--
-- Makes runs, each with its record and its place in an index, all in one step. Where an id still has an unfinished
-- run, the caller says what is to be done: nothing, or to change that run. One that is at work is not touched: a single
-- follow-up waits for its end. Sent again with the same call number, it makes nothing and says what the first one did.
-- A job that carries a token is made once: for a day the token stands for that run, whatever has become of it.
--
-- KEYS meta       hash  counter `run`
-- KEYS jobs       hash  run -> record
-- KEYS ids        hash  chosen id -> newest run
-- KEYS named      hash  run -> chosen id
-- KEYS pending    zset  run -> place
-- KEYS scheduled  zset  run -> due score
-- KEYS blocked    zset  run -> place
-- KEYS expiring   zset  run -> time it must have started by, ms
-- KEYS locked     hash  run -> its lock
-- KEYS firsts     prefix  token -> the run that it made
-- ARGV[1] queue
-- ARGV[2] inbox      prefix of the channels
-- ARGV[3] call       number of this call
-- ARGV[4…] two for each job: how, and the rest of its record (options, task, arguments). How is a random suffix of eight
--          characters for one that is due now and has no more to say; else with tabs between: suffix, priority, due
--          moment, expiry moment or "", and "" or flags=chosen id. Flags: "-" leaves a run of that id alone, else see
--          `update`; a token stands behind them with a ! between
--
-- Returns lines: the number before the first run made and the time, ms, with a blank between; then for each job that made
-- none its index and "in_use run", "updated run", "again run" where its token was known, or why it cannot be: "task run",
-- "after run", "untied -"

-- @include column
-- @include emit
-- @include follow
-- @include moment
-- @include now_ms
-- @include parts
-- @include place
-- @include replay
-- @include run_name
-- @include tally
-- @include text_of
-- @include wake
-- @rare enter_all
-- @rare hand_over
-- @rare index_new_terms
-- @rare meet

local before = recall("enqueue", call)
if before then return before end

local now = now_ms()
local first = tonumber(redis.call("HGET", meta, "run") or 0)
local number, freed, alarm = first, 0, nil
local written, due_count = 0, 0 -- how many of each are gathered
local made, changed, outcome = {}, {}, { text_of(first) .. " " .. text_of(now) }
local records, due_now, due_later, expiries, chosen, chosen_ids = {}, {}, {}, {}, {}, {}
local wanted_locks, entering, is_new, tasks_made, termed, words_of, amount_of = {}, {}, {}, {}, {}, {}, {}

-- Writes what has been gathered: most jobs are written together.
local function flush()
  if written == 0 then return end
  redis.call("HSET", jobs, unpack(records))
  if #chosen > 0 then
    redis.call("HSET", named, unpack(chosen))
    redis.call("HSET", ids, unpack(chosen_ids))
  end
  if #expiries > 0 then redis.call("ZADD", expiring, unpack(expiries)) end
  if due_count > 0 then redis.call("ZADD", pending, unpack(due_now)) end
  if #due_later > 0 then redis.call("ZADD", scheduled, unpack(due_later)) end
  if #wanted_locks > 0 then redis.call("HSET", locked, unpack(wanted_locks)) end
  freed = freed + due_count + (#entering > 0 and enter_all(entering) or 0)
  written, due_count = 0, 0
  records, due_now, due_later, expiries, chosen, chosen_ids = {}, {}, {}, {}, {}, {}
  wanted_locks, entering, is_new = {}, {}, {}
end

-- Options, their parts and task of the job before: most have the same.
local lines, parts, task = nil, nil, nil
local stamp, place_now = " " .. text_of(now) .. "\n", text_of(place(0, now))

for at = 4, #ARGV, 2 do
  local how, rest = ARGV[at], ARGV[at + 1]
  local suffix, priority, due, expiry, name = how, 0, "", "", ""
  if #how ~= 8 then suffix, priority, due, expiry, name = string.match(how, "^(%w*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t(.*)$") end
  if not lines or string.sub(rest, 1, #lines) ~= lines then
    local options
    lines, options, task = string.match(rest, "^(([^\n]*)\n([^\n]*)\n)")
    parts = options ~= "" and split_options(options) or {}
  end
  local flags, token, id, holder, refusal
  if name ~= "" then
    flags, token, id = string.match(name, "^([^=!]*)!?([^=]*)=(.+)$")
    if is_new[id] then flush() end
    local became_free
    holder, refusal, became_free = meet(id, flags, token, priority, due, expiry, rest, now)
    freed = freed + became_free
    if refusal == "updated" then changed[#changed + 1] = holder end
  end
  if not holder and (parts[7] or "") ~= "" then
    -- It comes after others, and the run that would have stood for it has just ended.
    holder, refusal = "-", "untied"
  end
  if refusal then
    outcome[#outcome + 1], outcome[#outcome + 2] = text_of((at - 4) / 2), refusal .. " " .. holder
  else
    number = number + 1
    local run = run_name(number)
    made[number - first] = run
    if token and token ~= "" then redis.call("SET", firsts .. ":" .. token, run, "PX", 86400000) end
    tasks_made[number - first] = task
    amount_of[task] = (amount_of[task] or 0) + 1
    if (parts[8] or "") ~= "" then termed[#termed + 1], words_of[#words_of + 1] = run, parts[8] end
    local head = suffix
    if id then
      is_new[id], head = true, "=" .. id
      chosen[#chosen + 1], chosen[#chosen + 2] = run, id
      chosen_ids[#chosen_ids + 1], chosen_ids[#chosen_ids + 2] = id, run
    end
    written = written + 1
    records[2 * written - 1], records[2 * written] = run, head .. stamp .. rest
    if expiry ~= "" then expiries[#expiries + 1], expiries[#expiries + 2] = text_of(moment(expiry, now)), run end
    local start = due == "" and now or moment(due, now)
    local run_place = how == suffix and place_now or text_of(place(priority, start))
    local lock = parts[6] or ""
    if lock ~= "" then wanted_locks[#wanted_locks + 1], wanted_locks[#wanted_locks + 2] = run, lock end
    if holder then
      redis.call("ZADD", blocked, run_place, run)
      follow(holder, run, flags)
    elseif start > now then
      due_later[#due_later + 1], due_later[#due_later + 2] = text_of(due_score(priority, start)), run
    elseif lock ~= "" then
      entering[#entering + 1] = { run, run_place, lock }
    else
      due_count = due_count + 1
      due_now[2 * due_count - 1], due_now[2 * due_count] = run_place, run
    end
    if start > now and not holder then alarm = alarm or run end
  end
end

flush()
if #made > 0 then
  redis.call("HSET", meta, "run", text_of(number))
  for task, amount in pairs(amount_of) do count(task, "enqueued", amount) end
  index_tasks(first + 1, tasks_made)
  if #termed > 0 then index_new_terms(termed, words_of) end
end
emit("enqueue", made)
emit("update", changed)
if freed == 1 then
  hand_over(now)
elseif freed > 1 then
  wake(math.min(freed, 8))
elseif alarm or #changed > 0 then
  -- If the next to fall due is new or has moved, one waiting worker must hear of it and set its alarm.
  local head = redis.call("ZRANGE", scheduled, 0, 0)[1]
  if head and (#changed > 0 or head >= alarm) then wake(1) end
end
write_tally(now)
local answer = table.concat(outcome, "\n")
remember("enqueue", call, answer)
return answer
