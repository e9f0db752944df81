-- Records the length of the longest job record of a queue, if it is so long that a claim might return too much: see
-- `pop_runs_within_bytes`.
-- @include format_integer

-- `jobs_key` is that of this queue or of its failure queue.
local function record_longest_job(length, jobs_key)
  if length <= C.SHORT_RECORD then return end
  local meta = string.sub(jobs_key, 1, -#"jobs" - 1) .. "meta"
  local longest = tonumber(redis.call("HGET", meta, "longest_job") or 0)
  if not longest or length > longest then redis.call("HSET", meta, "longest_job", format_integer(length)) end
end
