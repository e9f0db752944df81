-- Returns the task of a job record; "?" if it cannot be read. Most have the same options and task as the one before.
local lines_before, task_before = "", "?"

local function task_of_job_record(record)
  local head_end = string.find(record, "\n", 1, true) or 0
  if lines_before == "" or string.sub(record, head_end + 1, head_end + #lines_before) ~= lines_before then
    local lines, task = string.match(record, "^([^\n]*\n([^\n]*)\n)", head_end + 1)
    lines_before, task_before = lines or "", head_end > 0 and task or "?"
  end
  return task_before
end
