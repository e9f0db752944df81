-- register_queues: no change of state
--
-- Adds queues to the list of queues. The first call for a queue sets its number of shards, if any; later calls do not
-- change it. Harmless when sent again.
--
-- KEYS queues  set   names of the queues ever used
-- KEYS shards  hash  sharded queue -> number of shards
-- ARGV[1…] two for each queue: its name, and the number of shards asked for, 0 for none
--
-- Returns for each how many it has, 0 for none

local reply = {}
for at = 1, #ARGV, 2 do
  local queue, wanted = ARGV[at], ARGV[at + 1]
  local count = redis.call("HGET", K.shards, queue)
  if not count and wanted ~= "0" and redis.call("SISMEMBER", K.queues, queue) == 0 then
    redis.call("HSET", K.shards, queue, wanted)
    count = wanted
  end
  for shard = 1, count or 0 do
    redis.call("SADD", K.queues, queue .. "~" .. shard .. "of" .. count)
  end
  if not count then redis.call("SADD", K.queues, queue) end
  reply[#reply + 1] = count or "0"
end
return reply
