-- A run becomes visible: it is counted, and found by its task and its terms.
-- @include index_task
-- @include terms
-- @include parts
-- @include tally
-- @include task_of

local function index_run(run, record)
  local task, _, options = task_of(record), split_record(record)
  count(task, "enqueued")
  index_task(run, task)
  local words = split_options(options)[8]
  if words ~= "" then index_terms(run, words) end
end
