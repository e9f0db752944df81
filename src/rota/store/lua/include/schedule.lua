-- A schedule is its state as a line of JSON, which scripts change; its rule and its settings, a line each, which only
-- Python reads; and the record of its jobs without the head.
-- keys: schedules

-- State, rule, settings and body; nil when there is no such schedule.
local function read_schedule(name)
  local record = redis.call("HGET", schedules, name)
  if not record then return nil end
  local state, rule, settings, body = string.match(record, "^([^\n]*)\n([^\n]*)\n([^\n]*)\n(.*)$")
  return cjson.decode(state), rule, settings, body
end

local function write_schedule(name, state, rule, settings, body)
  redis.call("HSET", schedules, name, table.concat({ cjson.encode(state), rule, settings, body }, "\n"))
end
