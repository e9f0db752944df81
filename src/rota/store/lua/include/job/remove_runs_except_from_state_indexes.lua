-- Removes all data of finished or deleted runs, except their entries in the state indexes. Where no run has more than
-- its records, it removes only those.
-- @include queue_key_prefix
-- @include remove_runs_from_task_index_and_terms
-- @rare remove_runs_with_details_except_from_state_indexes

local function remove_runs_except_from_state_indexes(gone)
  if #gone == 0 then return end
  local has_details = redis.call(
    "EXISTS", K.named, K.stopping, K.results, K.errors, K.history, K.progress, K.logs, K.waiters,
    K.merged_from, K.has_parents, K.has_dependents, K.steps, queue_key_prefix .. "blobs"
  )
  if has_details > 0 then
    return remove_runs_with_details_except_from_state_indexes(gone)
  end
  redis.call("HDEL", K.jobs, unpack(gone))
  redis.call("HDEL", K.runs, unpack(gone))
  remove_runs_from_task_index_and_terms(gone)
end
