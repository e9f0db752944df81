-- The minute in which something was last counted is over, and maybe its hour: what it added is written down.
-- @include text_of

local WIDTH, MINUTES_KEPT_MS, HOURS_KEPT_MS = 64, 90000000, 2682000000

-- What was counted since `before`, as place and amount in turn.
local function difference(sums, before)
  local added, bytes = {}, WIDTH * 8
  local numbers = ">" .. string.rep("i8", WIDTH)
  local function unpacked(of_task) return { struct.unpack(numbers, of_task .. string.rep("\0", bytes - #of_task)) } end
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

local function turn_page(of_book, this_minute)
  local sums, last_minute = redis.call("GET", of_book.prefix .. "tally"), of_book.last_minute
  local function keep(page, since, number, unit_ms, kept_ms)
    local added = difference(sums, redis.call("GET", since) or "")
    redis.call("SET", page .. ":" .. text_of(number), added, "PXAT", text_of((number + 1) * unit_ms + kept_ms))
    redis.call("SET", since, sums)
  end
  if sums then
    keep(of_book.prefix .. "minute", of_book.prefix .. "minute_tally", last_minute, 60000, MINUTES_KEPT_MS)
    local last_hour = math.floor(last_minute / 60)
    if math.floor(this_minute / 60) > last_hour then
      keep(of_book.prefix .. "hour", of_book.prefix .. "hour_tally", last_hour, 3600000, HOURS_KEPT_MS)
    end
  end
  redis.call("HSET", of_book.prefix .. "slots", " minute", text_of(this_minute))
  of_book.last_minute = this_minute
end
