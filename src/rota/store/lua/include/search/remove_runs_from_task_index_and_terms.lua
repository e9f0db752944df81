-- Removes runs from the task index and the search terms.
-- @include assign_task_numbers
-- @include increment_counter
-- @include byte_offset_in_task_index
-- @rare remove_runs_from_search_terms

local function remove_runs_from_task_index_and_terms(gone)
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
    local key = queue_counters.prefix .. "task_index:" .. chunk
    local first, last = byte_offset_in_task_index(of_chunk.first), byte_offset_in_task_index(of_chunk.last)
    if increment_counter(queue_counters.prefix .. "task_index_sizes", chunk, -of_chunk.size) <= 0 then
      redis.call("HDEL", queue_counters.prefix .. "task_index_sizes", chunk)
      redis.call("UNLINK", key)
    elseif last - first + 1 == of_chunk.size then
      -- Consecutive runs, as most are.
      redis.call("SETRANGE", key, first, string.rep("\0", of_chunk.size))
    else
      local cleared = {}
      for _, run in ipairs(of_chunk) do
        local at = #cleared
        cleared[at + 1], cleared[at + 2] = "SET", "u8"
        cleared[at + 3], cleared[at + 4] = "#" .. byte_offset_in_task_index(run), 0
      end
      redis.call("BITFIELD", key, unpack(cleared))
    end
  end
  if redis.call("EXISTS", K.terms) > 0 then remove_runs_from_search_terms(gone) end
end
