-- Writes the parents of a run: names separated by spaces, "?" before a parent that may fail, and "=" and a result
-- placeholder after one whose result goes into the arguments. A value in `parents` is the flag ("-": must succeed,
-- "?": may fail), the number of the latest outcome, and the placeholder. `max_payload` is how long the arguments may
-- be once the results are in them.
-- @include collect_and_fill_parent_results

local function write_parents_of_run(run, names, max_payload)
  local fields, takes_results = {}, false
  for flag, name, token in string.gmatch(names, "(%??)([^%s=]+)(%S*)") do
    fields[#fields + 1], fields[#fields + 2] = name, (flag == "" and "-" or "?") .. "-1" .. token
    takes_results = takes_results or token ~= ""
  end
  redis.call("SADD", K.has_parents, run)
  if #fields > 0 then redis.call("HSET", K.parents .. ":" .. run, unpack(fields)) end
  if takes_results then redis.call("HSET", parent_results_of(run), "limit", max_payload) end
end
