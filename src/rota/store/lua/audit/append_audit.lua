-- append_audit: no change of state
--
-- Appends an entry to the audit log. A full log loses the oldest entry of the caller that has the most: one that
-- floods it displaces the entries of callers that have more than it, then its own. Entries that no list has, as
-- after a partial restore, are lost first. Readers recognise an entry that was written twice by the token in it.
--
-- flags: allow-oom
--
-- KEYS audit          stream  the entries
-- KEYS audit_callers  zset    caller -> number of its entries
-- KEYS audit_of       prefix  `audit_of:…`: ids of one caller's entries, oldest first
-- ARGV[1] caller
-- ARGV[2] entry      JSON
-- ARGV[3] kept       most entries of the log
--
-- Returns the id of the entry

local entry_id = redis.call("XADD", K.audit, "*", "entry", entry, "caller", caller)
redis.call("RPUSH", K.audit_of .. ":" .. caller, entry_id)
redis.call("ZINCRBY", K.audit_callers, 1, caller)
-- Twice: a log whose bound was lowered shrinks by one entry with each call.
for _ = 1, 2 do
  if redis.call("XLEN", K.audit) <= tonumber(kept) then break end
  local first = redis.call("XRANGE", K.audit, "-", "+", "COUNT", 1)[1]
  local loser = first[2][4]
  if not loser or redis.call("LINDEX", K.audit_of .. ":" .. loser, 0) ~= first[1] then
    redis.call("XDEL", K.audit, first[1])
  else
    local largest = redis.call("ZRANGE", K.audit_callers, 0, 0, "REV")[1]
    -- All have as few: the oldest entry goes, not the one that has just been written.
    if largest and redis.call("LINDEX", K.audit_of .. ":" .. largest, 0) ~= entry_id then loser = largest end
    local oldest = redis.call("LPOP", K.audit_of .. ":" .. loser)
    if oldest then redis.call("XDEL", K.audit, oldest) end
    if tonumber(redis.call("ZINCRBY", K.audit_callers, -1, loser)) <= 0 then
      redis.call("ZREM", K.audit_callers, loser)
      redis.call("UNLINK", K.audit_of .. ":" .. loser)
    end
  end
end
return entry_id
