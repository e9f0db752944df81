-- Counts a new run as it becomes visible, and indexes it by task and search terms.
-- @include add_and_remove_search_terms
-- @include add_run_to_task_index
-- @include gather_and_write_counts
-- @include split_and_join_job_record
-- @include task_of_job_record

local function count_and_index_new_run(run, record)
  local task, _, options = task_of_job_record(record), split_job_record(record)
  count(task, "enqueued")
  add_run_to_task_index(run, task)
  local words = split_options(options)[C.OPTION_TERMS]
  if words ~= "" then index_terms(run, words) end
end
