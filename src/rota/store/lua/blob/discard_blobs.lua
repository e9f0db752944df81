-- discard_blobs: no change of state
--
-- Removes blobs that no job has taken: the enqueue was refused, or found an existing job. Harmless when sent again.
--
-- flags: allow-oom
-- ARGV[1…] blobs
--
-- Returns "ok"

-- @include can_take_blobs
-- @include now_ms
-- @include remove_blobs

for _, blob in ipairs(ARGV) do
  if can_take_blobs(blob) then remove_blobs(blob, now_ms()) end
end
return "ok"
