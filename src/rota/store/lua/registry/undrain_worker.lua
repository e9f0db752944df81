-- undrain_worker: no change of state
--
-- Withdraws the request to drain a worker: it claims jobs again. Refused once the worker has reported that it is
-- drained. The change is pushed, and repeated in the reply to each registration. Sent again with the same token,
-- it changes nothing: by then the worker may have been asked again. A planner passes its fence, and withdraws only
-- the requests of planners.
--
-- flags: allow-oom
-- KEYS workers   hash  worker -> its registry entry, JSON
-- KEYS draining  hash  worker that was asked to stop -> "operator" or "planner"
-- ARGV[1] inbox   prefix of the channels
-- ARGV[2] worker
-- ARGV[3] fence   of the planner lease; "" for an operator
--
-- Returns "active" | "draining" (by an operator) | "drained" | "stopped" | "missing" | "fenced"

-- @include emit_event
-- @include holds_planner_lease
-- @include run_once_per_token

return run_once_per_token(function()
  if fence ~= "" and not holds_planner_lease(fence) then return "fenced" end
  local said = redis.call("HGET", K.workers, worker)
  if not said then return "missing" end
  local state = cjson.decode(said).state
  if state == "stopped" or state == "drained" then return state end
  if fence ~= "" and redis.call("HGET", K.draining, worker) == "operator" then return "draining" end
  if redis.call("HDEL", K.draining, worker) == 1 then emit_event("worker", { worker }) end
  redis.call("PUBLISH", inbox .. worker, "undrain")
  return "active"
end)
