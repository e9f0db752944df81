-- Adds to a counter, a field of a hash, and returns the sum. A damaged value is repaired: an error would come after
-- other writes of the script, and return with every call.
-- @rare repair_counter

local function increment_counter(key, field, amount)
  local sum = redis.pcall("HINCRBY", key, field, amount)
  return type(sum) == "number" and sum or repair_counter(key, field, amount, sum.err)
end
