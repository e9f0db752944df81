-- Replaces the blobs of a run whose job record was replaced: takes the new ones, and removes those that it no longer
-- names. A follow-up that was merged into the run gives its blobs to it; those that it keeps are removed with it.
-- @include blobs_in_record
-- @include blobs_without
-- @include now_ms
-- @include queue_key_prefix
-- @include remove_blobs
-- @include take_blobs

local function replace_blobs_of_run(run, record, merged)
  local old, new = redis.call("HGET", queue_key_prefix .. "blobs", run) or "", blobs_in_record(record)
  if old ~= new then
    remove_blobs(blobs_without(old, new), now_ms())
    if new ~= "" then take_blobs(run, new) else redis.call("HDEL", queue_key_prefix .. "blobs", run) end
  end
  local left = merged and redis.call("HGET", queue_key_prefix .. "blobs", merged)
  if left then
    remove_blobs(blobs_without(left, new), now_ms())
    redis.call("HDEL", queue_key_prefix .. "blobs", merged)
  end
end
