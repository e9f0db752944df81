-- Pops the first pending runs whose job records have no more than `C.CALL_BYTES` together, at least one. Only queues
-- that have had a long record pay for it. Returns run and score in turn, and whether the bytes were the limit.

local function pop_runs_within_bytes(limit)
  local first, bytes, count = redis.call("ZRANGE", K.pending, 0, limit - 1), 0, 0
  for i = 1, #first do
    bytes = bytes + redis.call("HSTRLEN", K.jobs, first[i])
    if bytes > C.CALL_BYTES and count > 0 then break end
    count = count + 1
  end
  return count > 0 and redis.call("ZPOPMIN", K.pending, count) or {}, count < #first
end
