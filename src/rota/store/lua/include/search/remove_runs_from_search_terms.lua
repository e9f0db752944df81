-- Removes runs from their search terms.
-- @include add_and_remove_search_terms

local function remove_runs_from_search_terms(gone)
  each_term(gone, redis.call("HMGET", K.terms, unpack(gone)), leave_term)
  redis.call("HDEL", K.terms, unpack(gone))
end
