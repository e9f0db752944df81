-- drain_worker: no change of state
--
-- Asks a worker to claim no more jobs, finish those it runs, and stop. The request is pushed, and repeated in the
-- reply to each registration, so that a lost push delays it by seconds. Worker names are never reused. Sent again
-- with the same token, it changes nothing: by then the request may have been withdrawn. A planner passes its fence; a
-- request of an operator stays one when a planner repeats it.
--
-- flags: allow-oom
-- KEYS workers   hash  worker -> its registry entry, JSON
-- KEYS draining  hash  worker that was asked to stop -> "operator" or "planner"
-- ARGV[1] inbox   prefix of the channels
-- ARGV[2] worker
-- ARGV[3] fence   of the planner lease; "" for an operator
--
-- Returns "draining" | "drained" | "stopped" | "missing" | "fenced" (another planner has the lease)

-- @include emit_event
-- @include holds_planner_lease
-- @include run_once_per_token

return run_once_per_token(function()
  if fence ~= "" and not holds_planner_lease(fence) then return "fenced" end
  local said = redis.call("HGET", K.workers, worker)
  if not said then return "missing" end
  local state = cjson.decode(said).state
  if state == "stopped" or state == "drained" then return state end
  if redis.call("HSETNX", K.draining, worker, "planner") == 1 then emit_event("worker", { worker }) end
  if fence == "" then redis.call("HSET", K.draining, worker, "operator") end
  redis.call("PUBLISH", inbox .. worker, "drain")
  return "draining"
end)
