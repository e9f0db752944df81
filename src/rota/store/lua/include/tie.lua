-- Notes what a run comes after: names of jobs with spaces between, "?" before one that may also fail, and behind "=" the
-- token in the run's arguments that its result takes the place of.
-- "-7" of a parent in `needs` says that it must succeed, and that its seventh piece of news was the latest heard of.
-- keys: tied, needs

local function tie(run, names)
  local fields = {}
  for flag, name, token in string.gmatch(names, "(%??)([^%s=]+)(%S*)") do
    fields[#fields + 1], fields[#fields + 2] = name, (flag == "" and "-" or "?") .. "-1" .. token
  end
  redis.call("SADD", tied, run)
  if #fields > 0 then redis.call("HSET", needs .. ":" .. run, unpack(fields)) end
end
