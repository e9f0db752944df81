-- enlist: no change of state
--
-- Adds queues to those that are listed. The first to use a queue says how many shards it has, if any; from then on that
-- is how many it has, whoever asks for more. Harmless when sent again.
--
-- KEYS queues  set   names of the queues ever used
-- KEYS shards  hash  queue -> how many shards it has
-- ARGV[1…] two for each queue: its name, and the number of shards asked for, 0 for none
--
-- Returns for each how many it has, 0 for none

local reply = {}
for at = 1, #ARGV, 2 do
  local queue, wanted = ARGV[at], ARGV[at + 1]
  local count = redis.call("HGET", shards, queue)
  if not count and wanted ~= "0" and redis.call("SISMEMBER", queues, queue) == 0 then
    redis.call("HSET", shards, queue, wanted)
    count = wanted
  end
  for shard = 1, count or 0 do
    redis.call("SADD", queues, queue .. "~" .. shard .. "of" .. count)
  end
  if not count then redis.call("SADD", queues, queue) end
  reply[#reply + 1] = count or "0"
end
return reply
