-- Returns the number of the newest run of the queue. A damaged one is repaired before anything is written.
-- @rare repair_counter

local function last_run_number()
  local value = redis.call("HGET", K.meta, "run")
  local number = tonumber(value or 0)
  if number and number >= 0 and number % 1 == 0 then return number end
  return repair_counter(K.meta, "run", 0, "not an integer")
end
