-- Terms of runs that have none yet: words with spaces between, for each.
-- keys: terms
-- @include terms

local function index_new_terms(made, words_of)
  local fields = {}
  for i, run in ipairs(made) do fields[2 * i - 1], fields[2 * i] = run, words_of[i] end
  redis.call("HSET", terms, unpack(fields))
  each_term(made, words_of, join_term)
end
