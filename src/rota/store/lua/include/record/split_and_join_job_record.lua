-- Splits a job record into its lines and its options into parts, and joins the parts. A record is four lines: head,
-- options, task, arguments. The options are parts separated by tabs; empty parts at the end are left out. A damaged
-- record has none of them.

-- Returns head, options, task, and the position of the arguments, which may be long.
local function split_job_record(record)
  return string.match(record, "^([^\n]*)\n([^\n]*)\n([^\n]*)\n()")
end

local function split_options(options)
  local parts = {}
  for part in string.gmatch((options or "") .. "\t", "([^\t]*)\t") do parts[#parts + 1] = part end
  for i = #parts + 1, C.OPTION_BLOBS do parts[i] = "" end
  return parts
end

local function join_options(parts)
  return (string.gsub(table.concat(parts, "\t"), "\t+$", ""))
end
