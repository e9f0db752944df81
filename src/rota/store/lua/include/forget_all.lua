-- Removes what is kept of runs besides their records, where there is any of it. Of a run whose handler has yet to stop,
-- claim and id stay until `release`: no other run may take the id before.
-- keys: jobs, runs, ids, named, stopping, results, errors, history, progress, logs, log, waiters
-- @include forget_ties
-- @include unindex

local function forget_all(gone)
  local stopped = gone
  if redis.call("EXISTS", stopping) > 0 then
    stopped = {}
    for index, lease in ipairs(redis.call("ZMSCORE", stopping, unpack(gone))) do
      if lease then
        -- Without its record an id that was made up would find nothing: it is looked up like a chosen one from now on.
        -- Where the id has a follow-up it means that one.
        local suffix = string.match(redis.call("HGET", jobs, gone[index]) or "", "^([^=]%S*) ")
        if suffix then
          redis.call("HSET", named, gone[index], gone[index] .. "-" .. suffix)
          redis.call("HSETNX", ids, gone[index] .. "-" .. suffix, gone[index])
        end
      else
        stopped[#stopped + 1] = gone[index]
      end
    end
  end
  redis.call("HDEL", jobs, unpack(gone))
  unindex(gone)
  if redis.call("EXISTS", results, errors, history, progress, waiters) > 0 then
    for _, key in ipairs({ results, errors, history, progress, waiters }) do
      redis.call("HDEL", key, unpack(gone))
    end
  end
  if redis.call("EXISTS", logs) > 0 then
    for index, has_log in ipairs(redis.call("HMGET", logs, unpack(gone))) do
      if has_log then redis.call("UNLINK", log .. ":" .. gone[index]) end
    end
    redis.call("HDEL", logs, unpack(gone))
  end
  if #stopped == 0 then return end
  forget_ties(stopped)
  redis.call("HDEL", runs, unpack(stopped))
  if redis.call("EXISTS", named) > 0 then
    for index, id in ipairs(redis.call("HMGET", named, unpack(stopped))) do
      -- The id may belong to a newer run by now.
      if id and redis.call("HGET", ids, id) == stopped[index] then redis.call("HDEL", ids, id) end
    end
    redis.call("HDEL", named, unpack(stopped))
  end
end
