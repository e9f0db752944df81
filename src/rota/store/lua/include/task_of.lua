-- The task that a record names; "?" where it cannot be read.
local function task_of(record)
  return string.match(record, "^[^\n]*\n[^\n]*\n([^\n]*)\n") or "?"
end
