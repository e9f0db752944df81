-- Finds the rank of (score, member) in a sorted set: returns how many entries come before it, and whether it is still
-- there. If it is gone, its position is found by bisection among those with the same score, in O(log n).
-- @include is_run_before

local function find_rank_by_score_and_member(key, score, member)
  local low = redis.call("ZCOUNT", key, "-inf", "(" .. score)
  local high = redis.call("ZCOUNT", key, "-inf", score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local found = redis.call("ZRANGE", key, middle, middle)[1]
    if not found then return high, false end
    if found == member then return middle, true end
    if is_run_before(found, member) then low = middle + 1 else high = middle end
  end
  return low, false
end
