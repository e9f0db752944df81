-- No term finds these runs any more.
-- keys: terms
-- @include terms

local function unindex_terms(gone)
  each_term(gone, redis.call("HMGET", terms, unpack(gone)), leave_term)
  redis.call("HDEL", terms, unpack(gone))
end
