-- Adds new runs to the indexes of their search terms: words separated by spaces, for each.
-- @include add_and_remove_search_terms

local function add_new_runs_to_search_terms(made, words_of)
  local fields = {}
  for i, run in ipairs(made) do fields[2 * i - 1], fields[2 * i] = run, words_of[i] end
  redis.call("HSET", K.terms, unpack(fields))
  each_term(made, words_of, join_term)
end
