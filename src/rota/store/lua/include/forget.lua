-- Removes all that is kept of finished or deleted runs, except their entries in the state indexes.
-- keys: jobs, runs, named, stopping, results, errors, history, progress, logs, waiters, merges, tied, parents, steps
-- @include unindex
-- @rare forget_all

local function forget(gone)
  if #gone == 0 then return end
  if redis.call("EXISTS", named, stopping, results, errors, history, progress, logs, waiters, merges, tied, parents, steps) > 0 then
    return forget_all(gone)
  end
  redis.call("HDEL", jobs, unpack(gone))
  redis.call("HDEL", runs, unpack(gone))
  unindex(gone)
end
