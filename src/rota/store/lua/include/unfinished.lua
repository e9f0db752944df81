-- The unfinished run of that id, if there is one; also of an id that was made up and is now chosen again. And whether
-- it is at work, or its handler has yet to stop.
-- keys: runs, ids, stopping
-- @include resolve

local function unfinished(id)
  local run = redis.call("HGET", ids, id) or (#id == 18 and resolve(id, ""))
  if not run then return nil end
  local line = redis.call("HGET", runs, run)
  local state = line and string.match(line, "^%S+") or "waiting"
  if state == "waiting" or state == "processing" then return run, state == "processing" end
  if redis.call("ZSCORE", stopping, run) then return run, true end
  return nil
end
