-- heartbeat: no change of state
--
-- Extends the leases that a worker still holds, and tells it which it has lost. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS runs        hash  run -> what happened to it
-- KEYS processing  zset  run -> lease deadline, ms
-- KEYS stopping    zset  run whose handler has yet to stop -> lease
-- KEYS beats       hash  worker -> last heartbeat, ms
-- ARGV[1] worker
-- ARGV[2] lease_ms
-- ARGV[3…] two for each run: run, claim
--
-- Returns index and "cancelled" | "lost" for each run whose handler must stop

-- @include now_ms
-- @include record
-- @include text_of
-- @include tick

local now = now_ms()
tick(now, tonumber(lease_ms))
redis.call("HSET", beats, worker, text_of(now))
local asked, told, leases, stops = {}, {}, {}, {}
for at = 3, #ARGV, 2 do asked[#asked + 1] = ARGV[at] end
if #asked == 0 then return told end
local deadline = text_of(now + lease_ms)
for i, line in ipairs(redis.call("HMGET", runs, unpack(asked))) do
  local claim = ARGV[2 * i + 2]
  if is_claim(line, "processing", claim) then
    leases[#leases + 1], leases[#leases + 2] = deadline, asked[i]
  else
    local was_cancelled = is_claim(line, "cancelled", claim)
    -- A handler that is being stopped holds its place until its worker says that it has ended.
    if was_cancelled then stops[#stops + 1], stops[#stops + 2] = deadline, asked[i] end
    told[#told + 1] = text_of(i - 1)
    told[#told + 1] = (was_cancelled or not line) and "cancelled" or "lost"
  end
end
if #leases > 0 then redis.call("ZADD", processing, unpack(leases)) end
if #stops > 0 then redis.call("ZADD", stopping, "XX", unpack(stops)) end
return told
