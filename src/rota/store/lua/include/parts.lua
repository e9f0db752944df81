-- A record is four lines: head, options, task, arguments. The options are six parts with tabs between: general ones as
-- JSON, attempts, backoff, max_stalls, tags, meta and trace, lock; a seventh names the jobs it comes after, an eighth
-- the terms it is found by. Parts that are empty at the end are left out. A record that cannot be read, damaged by hand, has none of them.

local function split_record(record)
  return string.match(record, "^([^\n]*)\n([^\n]*)\n([^\n]*)\n(.*)$")
end

local function split_options(options)
  local parts = {}
  for part in string.gmatch((options or "") .. "\t", "([^\t]*)\t") do parts[#parts + 1] = part end
  for i = #parts + 1, 8 do parts[i] = "" end
  return parts
end

local function join_options(parts)
  return (string.gsub(table.concat(parts, "\t"), "\t+$", ""))
end
