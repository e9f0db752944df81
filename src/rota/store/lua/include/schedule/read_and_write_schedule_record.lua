-- Reads and writes schedule records. A record is the schedule's state as a line of JSON, which scripts change; its
-- rule and its settings, a line each, which only Python reads; and the record of its jobs without the head.

-- Returns state, rule, settings and body; nil for an unknown schedule. A damaged one counts as unknown: the next put
-- replaces it.
local function read_schedule(name)
  local record = redis.call("HGET", K.schedules, name) or ""
  local line, rule, settings, body = string.match(record, "^([^\n]*)\n([^\n]*)\n([^\n]*)\n(.*)$")
  local is_read, state = pcall(cjson.decode, line or "")
  if not is_read or type(state) ~= "table" then return nil end
  for _, count in ipairs({ "version", "revision", "fired", "dropped", "skipped" }) do
    state[count] = tonumber(state[count]) or 0
  end
  state.last_id, state.manual_id = state.last_id or "", state.manual_id or ""
  return state, rule, settings, body
end

local function write_schedule(name, state, rule, settings, body)
  redis.call("HSET", K.schedules, name, table.concat({ cjson.encode(state), rule, settings, body }, "\n"))
end
