-- Indexes a run again by its search terms, if they changed as its job record was replaced.
-- @include add_and_remove_search_terms
-- @include split_and_join_job_record

local function reindex_changed_search_terms(run, before, after)
  local _, old = split_job_record(before)
  local _, new = split_job_record(after)
  local old_words, new_words = split_options(old)[C.OPTION_TERMS], split_options(new)[C.OPTION_TERMS]
  if old_words == new_words then return end
  local was_of = {}
  for word in string.gmatch(old_words, "%S+") do was_of[word] = true end
  drop_terms(run, function(word) return was_of[word] end)
  if new_words ~= "" then index_terms(run, new_words) end
end
