-- Collects the results that a run takes from its parents, by placeholder, and fills them into its arguments when it
-- is released: once, as each copy of a long record costs. The hash of a run also has `limit`, how long its arguments
-- may become, and `size`, the length of all results together. Beyond the limit no results are kept.
-- @include format_integer
-- @include queue_key_prefix
-- @include read_job_record
-- @include record_longest_job

local function parent_results_of(run)
  return queue_key_prefix .. "parent_results:" .. run
end

local function add_parent_result(run, placeholder, result)
  local key = parent_results_of(run)
  local limit, size = unpack(redis.call("HMGET", key, "limit", "size"))
  if not limit then return end
  size = (size or 0) + #result
  if size <= tonumber(limit) then
    redis.call("HSET", key, "size", format_integer(size), placeholder, result)
  else
    redis.call("UNLINK", key)
    redis.call("HSET", key, "limit", limit, "size", format_integer(size))
  end
end

-- Returns nil, or the limit if the arguments would be longer: then they are left as they are.
local function fill_parent_results(run)
  local key, by_placeholder = parent_results_of(run), {}
  local found, record = redis.call("HGETALL", key), read_job_record(run)
  for i = 1, #found, 2 do by_placeholder[found[i]] = found[i + 1] end
  redis.call("UNLINK", key)
  local head, arguments = string.match(record or "", "^([^\n]*\n[^\n]*\n[^\n]*\n)(.*)$")
  if not head then return nil end
  local limit, length = tonumber(by_placeholder.limit), #arguments
  if tonumber(by_placeholder.size or 0) > limit then return limit end
  -- A result may be taken several times.
  for placeholder in string.gmatch(arguments, '"(rota%.result%.[^"]+)"') do
    local result = by_placeholder[placeholder]
    if result then length = length + #result - #placeholder - #'""' end
  end
  if length > limit then return limit end
  local filled = string.gsub(arguments, '"(rota%.result%.[^"]+)"', by_placeholder)
  redis.call("HSET", K.jobs, run, head .. filled)
  record_longest_job(#head + #filled, K.jobs)
end
