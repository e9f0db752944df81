-- pause: no change of state
--
-- Stops claims of a queue for everyone, and nothing else; or lets them go on. Harmless when sent again.
--
-- flags: allow-oom
-- KEYS meta  hash  is_paused
-- ARGV[1] queue
-- ARGV[2] inbox   prefix of the channels
-- ARGV[3] wanted  "paused" or "open"
--
-- Returns "paused" | "open"

-- @include emit
-- @include wake

if wanted == "paused" then
  if redis.call("HSET", meta, "is_paused", 1) > 0 then emit("pause", { queue }) end
elseif redis.call("HDEL", meta, "is_paused") > 0 then
  emit("resume", { queue })
  wake(8)
end
return wanted
