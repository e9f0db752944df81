-- Formats the record of a new job: its head, which is "=" and the chosen id or a random suffix; the time as text; and
-- the rest: options, task, arguments.
local function format_new_job_record(head, at, rest)
  return head .. " " .. at .. "\n" .. rest
end
