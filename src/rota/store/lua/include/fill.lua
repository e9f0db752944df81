-- Puts the result of a job that a run came after into its arguments, in place of a token that stands for it.
-- keys: jobs

local function fill(run, token, result)
  local record = redis.call("HGET", jobs, run)
  if not record then return end
  local quoted, parts, from = '"' .. token .. '"', {}, 1
  while true do
    local at, to = string.find(record, quoted, from, true)
    if not at then break end
    parts[#parts + 1] = string.sub(record, from, at - 1)
    parts[#parts + 1] = result
    from = to + 1
  end
  parts[#parts + 1] = string.sub(record, from)
  redis.call("HSET", jobs, run, table.concat(parts))
end
