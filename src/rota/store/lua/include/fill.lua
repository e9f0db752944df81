-- Puts results of jobs that a run came after into its arguments, in place of the tokens that stand for them. All at once:
-- one that comes after thousands has a long record.
-- keys: jobs

local function fill(run, by_token)
  local record = redis.call("HGET", jobs, run)
  if not record then return end
  redis.call("HSET", jobs, run, (string.gsub(record, '"rota%.result%.[^"]+"', by_token)))
end
