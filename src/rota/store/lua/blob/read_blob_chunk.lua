-- read_blob_chunk: no change of state
--
-- Reads a chunk of a blob, for the run that has it.
--
-- flags: no-writes
-- KEYS blobs  hash    run -> its blobs, separated by spaces
-- KEYS blob   prefix  `blob:…`: chunks of one blob
-- ARGV[1] run
-- ARGV[2] blob
-- ARGV[3] index  of the chunk; 0 for the first. "" only checks that the run has the blob
--
-- Returns the chunk, or nil if the run does not have the blob

local names = " " .. (redis.call("HGET", K.blobs, run) or "") .. " "
if not string.find(names, " " .. blob .. " ", 1, true) then return false end
if index == "" then return "" end
return redis.call("LINDEX", K.blob .. ":" .. blob, index)
