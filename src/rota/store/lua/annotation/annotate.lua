-- annotate: no change of state
--
-- Stores an annotation: a mark on the charts. A full list loses the oldest ones. With a code version it is stored
-- only if workers did not announce that version last, nor within an hour: the workers of one deploy make one mark,
-- and a rollback makes another. Sent again with the same token, it changes nothing.
--
-- KEYS annotations    zset  annotation, JSON -> when, ms
-- KEYS code_versions  hash  code version -> when a worker announced it last, ms; " latest": the version marked last
-- ARGV[1] at       moment, ms; "" for now
-- ARGV[2] record   JSON
-- ARGV[3] version  that a worker announces; else ""
-- ARGV[4] kept     most annotations, and most versions
--
-- Returns when it is, ms; or "known"

-- @include format_integer
-- @include now_ms
-- @include run_once_per_token

local SAME_DEPLOY_MS = 3600000

return run_once_per_token(function()
  local now = now_ms()
  if version ~= "" then
    local latest, seen = unpack(redis.call("HMGET", K.code_versions, " latest", version))
    local is_full = redis.call("HLEN", K.code_versions) > tonumber(kept)
    if not seen and is_full then redis.call("UNLINK", K.code_versions) end
    redis.call("HSET", K.code_versions, version, format_integer(now))
    if latest == version or (seen and now - tonumber(seen) < SAME_DEPLOY_MS) then return "known" end
    redis.call("HSET", K.code_versions, " latest", version)
  end
  local moment = at ~= "" and at or format_integer(now)
  redis.call("ZADD", K.annotations, moment, record)
  redis.call("ZREMRANGEBYRANK", K.annotations, 0, -tonumber(kept) - 1)
  return moment
end)
