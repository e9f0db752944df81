-- heartbeat: no change of state
--
-- Records a worker's heartbeat: extends the leases that it holds, and returns those that it has lost. Harmless when
-- sent again.
--
-- flags: allow-oom
-- KEYS runs        hash  run -> run record: state, claim, worker, times, counts
-- KEYS processing  zset  run -> deadline of its lease, ms
-- KEYS stopping    zset  run whose handler has yet to stop -> lease
-- KEYS heartbeats  hash  worker -> its last heartbeat, ms
-- ARGV[1] worker
-- ARGV[2] lease_ms
-- ARGV[3] given_up  call number of the worker's claim whose runs it will not start, as the reply is overdue; else ""
-- ARGV[4] outage_gap_ms  a longer time without a claim or heartbeat counts as an outage of the server
-- ARGV[5…] two for each run: run, claim
--
-- Returns index and "cancelled" | "lost" for each run whose handler must stop

-- @include detect_server_outage
-- @include format_integer
-- @include now_ms
-- @include parse_and_format_run_record
-- @include record_and_check_claims_abandoned_by_worker

local now = now_ms()
record_server_seen(now, tonumber(lease_ms), tonumber(outage_gap_ms))
redis.call("HSET", K.heartbeats, worker, format_integer(now))
if given_up ~= "" then record_abandoned_claim(worker, given_up) end
local asked, lost, leases, stops = {}, {}, {}, {}
for at = 5, #ARGV, 2 do asked[#asked + 1] = ARGV[at] end
if #asked == 0 then return lost end
local deadline = format_integer(now + lease_ms)
for i, line in ipairs(redis.call("HMGET", K.runs, unpack(asked))) do
  local claim = ARGV[2 * i + 4]
  if is_claim(line, "processing", claim) then
    leases[#leases + 1], leases[#leases + 2] = deadline, asked[i]
  else
    local was_cancelled = is_claim(line, "cancelled", claim)
    -- A handler that is being stopped keeps its lock and id until its worker reports that it has ended.
    if was_cancelled then stops[#stops + 1], stops[#stops + 2] = deadline, asked[i] end
    lost[#lost + 1] = format_integer(i - 1)
    lost[#lost + 1] = (was_cancelled or not line) and "cancelled" or "lost"
  end
end
if #leases > 0 then redis.call("ZADD", K.processing, unpack(leases)) end
if #stops > 0 then redis.call("ZADD", K.stopping, "XX", unpack(stops)) end
return lost
