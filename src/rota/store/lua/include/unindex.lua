-- Runs are gone: nothing finds them any more.
-- keys: terms
-- @include book
-- @include offset_of
-- @rare unindex_terms

local function unindex(gone)
  local by_chunk = {}
  for i = 1, #gone do
    local run = gone[i]
    local chunk, high, low = string.sub(run, 1, 7), string.byte(run, 8, 9)
    local of_chunk, order = by_chunk[chunk], 256 * high + low
    if not of_chunk then
      of_chunk = { size = 0, first = run, first_order = order, last = run, last_order = order }
      by_chunk[chunk] = of_chunk
    elseif order < of_chunk.first_order then
      of_chunk.first, of_chunk.first_order = run, order
    elseif order > of_chunk.last_order then
      of_chunk.last, of_chunk.last_order = run, order
    end
    of_chunk.size = of_chunk.size + 1
    of_chunk[of_chunk.size] = run
  end
  for chunk, of_chunk in pairs(by_chunk) do
    local key = book.prefix .. "column:" .. chunk
    local first, last = offset_of(of_chunk.first), offset_of(of_chunk.last)
    if redis.call("HINCRBY", book.prefix .. "chunks", chunk, -of_chunk.size) <= 0 then
      redis.call("HDEL", book.prefix .. "chunks", chunk)
      redis.call("UNLINK", key)
    elseif last - first + 1 == of_chunk.size then
      -- They follow each other, as most do.
      redis.call("SETRANGE", key, first, string.rep("\0", of_chunk.size))
    else
      local cleared = {}
      for _, run in ipairs(of_chunk) do
        local at = #cleared
        cleared[at + 1], cleared[at + 2], cleared[at + 3], cleared[at + 4] = "SET", "u8", "#" .. offset_of(run), 0
      end
      redis.call("BITFIELD", key, unpack(cleared))
    end
  end
  if redis.call("EXISTS", terms) > 0 then unindex_terms(gone) end
end
