-- Stores the counts of the last minute, as a new one begins, and those of the last hour if that is over.
-- @include format_integer

local WIDTH, MINUTES_KEPT_MS, HOURS_KEPT_MS = 64, 90000000, 2682000000

-- Returns what was counted since `before`, as position and amount in turn.
local function difference(sums, before)
  local added, bytes = {}, WIDTH * 8
  local numbers = ">" .. string.rep("i8", WIDTH)
  local function unpacked(of_task)
    return { struct.unpack(numbers, of_task .. string.rep("\0", bytes - #of_task)) }
  end
  for from = 1, #sums, bytes do
    local new, old = string.sub(sums, from, from + bytes - 1), string.sub(before, from, from + bytes - 1)
    if new ~= old then
      local are, were = unpacked(new), unpacked(old)
      for i = 1, WIDTH do
        if are[i] ~= were[i] then
          added[#added + 1], added[#added + 2] = (from - 1) / 8 + i - 1, are[i] - were[i]
        end
      end
    end
  end
  return cmsgpack.pack(added)
end

local function store_counts_of_last_minute_and_hour(counters, this_minute)
  local sums, last_minute = redis.call("GET", counters.prefix .. "counters"), counters.last_minute
  -- `unit` is "minute" or "hour".
  local function keep(unit, number, unit_ms, kept_ms)
    local since = counters.prefix .. unit .. "_start_counters"
    local key = counters.prefix .. unit .. "_counters:" .. format_integer(number)
    local added = difference(sums, redis.call("GET", since) or "")
    redis.call("SET", key, added, "PXAT", format_integer((number + 1) * unit_ms + kept_ms))
    redis.call("SET", since, sums)
  end
  if sums then
    keep("minute", last_minute, 60000, MINUTES_KEPT_MS)
    local last_hour = math.floor(last_minute / 60)
    if math.floor(this_minute / 60) > last_hour then
      keep("hour", last_hour, 3600000, HOURS_KEPT_MS)
    end
  end
  redis.call("HSET", counters.prefix .. "task_numbers", " minute", format_integer(this_minute))
  counters.last_minute = this_minute
end
