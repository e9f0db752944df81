-- Finds the unfinished run of an id, if there is one; and whether it is processing, or its handler has yet to stop.
-- Also for an id that was not chosen and is now used as one.
-- @include find_run_by_id
-- @include read_fields_of_run_record

local function find_unfinished_run_of_id(id)
  local run = redis.call("HGET", K.ids, id) or (#id == 18 and find_run_by_id(id, ""))
  if not run then return nil end
  local line = redis.call("HGET", K.runs, run)
  local state = state_in_record(line)
  if state == "waiting" or state == "processing" then return run, state == "processing" end
  if redis.call("ZSCORE", K.stopping, run) then return run, true end
  return nil
end
