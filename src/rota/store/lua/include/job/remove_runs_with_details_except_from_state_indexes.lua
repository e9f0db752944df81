-- Removes all data of runs with their details: results, errors, history, progress, logs, blobs, ids, dependencies.
-- A run whose handler has yet to stop keeps its claim and id until `release_id_and_lock_of_stopped_run`: no other run
-- may take the id before.
-- @include queue_key_prefix
-- @include remove_dependency_data
-- @include remove_runs_from_task_index_and_terms
-- @rare remove_blobs_of_runs

local function remove_runs_with_details_except_from_state_indexes(gone)
  local stopped = gone
  if redis.call("EXISTS", K.stopping) > 0 then
    stopped = {}
    for index, lease in ipairs(redis.call("ZMSCORE", K.stopping, unpack(gone))) do
      if lease then
        -- Without the record, an id that was not chosen would not be found: from now on it is looked up like a chosen
        -- one. If it has a follow-up, it refers to that.
        local suffix = string.match(redis.call("HGET", K.jobs, gone[index]) or "", "^([^=]%S*) ")
        if suffix then
          redis.call("HSET", K.named, gone[index], gone[index] .. "-" .. suffix)
          redis.call("HSETNX", K.ids, gone[index] .. "-" .. suffix, gone[index])
        end
      else
        stopped[#stopped + 1] = gone[index]
      end
    end
  end
  redis.call("HDEL", K.jobs, unpack(gone))
  remove_runs_from_task_index_and_terms(gone)
  if redis.call("EXISTS", K.results, K.errors, K.history, K.progress, K.waiters) > 0 then
    for _, key in ipairs({ K.results, K.errors, K.history, K.progress, K.waiters }) do
      redis.call("HDEL", key, unpack(gone))
    end
  end
  if redis.call("EXISTS", K.logs) > 0 then
    for index, has_log in ipairs(redis.call("HMGET", K.logs, unpack(gone))) do
      if has_log then redis.call("UNLINK", K.log .. ":" .. gone[index]) end
    end
    redis.call("HDEL", K.logs, unpack(gone))
  end
  if redis.call("EXISTS", queue_key_prefix .. "blobs") > 0 then remove_blobs_of_runs(gone) end
  if #stopped == 0 then return end
  remove_dependency_data(stopped)
  redis.call("HDEL", K.runs, unpack(stopped))
  if redis.call("EXISTS", K.named) > 0 then
    for index, id in ipairs(redis.call("HMGET", K.named, unpack(stopped))) do
      -- The id may belong to a newer run by now.
      if id and redis.call("HGET", K.ids, id) == stopped[index] then redis.call("HDEL", K.ids, id) end
    end
    redis.call("HDEL", K.named, unpack(stopped))
  end
end
