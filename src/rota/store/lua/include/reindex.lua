-- A run's record has been replaced: it is found by what it says now.
-- @include terms
-- @include parts

local function reindex(run, before, after)
  local _, old = split_record(before)
  local _, new = split_record(after)
  local old_words, new_words = split_options(old)[8], split_options(new)[8]
  if old_words == new_words then return end
  local was_of = {}
  for word in string.gmatch(old_words, "%S+") do was_of[word] = true end
  drop_terms(run, function(word) return was_of[word] end)
  if new_words ~= "" then index_terms(run, new_words) end
end
