-- read: no change of state
--
-- Everything the store knows of some runs, as one snapshot.
--
-- flags: no-writes
-- ARGV[1] detail      "full" adds result and history; "brief" does not
-- ARGV[2…] two for each job: id ("" where a run is given), run ("" for the newest of the id)
--
-- Returns the server's time, then for each job "" if it is missing, or its description

-- @include describe
-- @include now_ms
-- @include resolve
-- @include text_of

local reply = { text_of(now_ms()) }
for at = 2, #ARGV, 2 do
  local run = ARGV[at + 1]
  if ARGV[at] ~= "" then run = resolve(ARGV[at], run) end
  reply[#reply + 1] = run and describe(run, detail) or ""
end
return reply
