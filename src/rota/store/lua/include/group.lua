-- Failed runs are found by the class of their last error. Dead letters that failed in the same way form a group: same class,
-- and same message but for numbers, addresses and what is quoted. Of messages beyond a thousand only the class counts.
-- keys: groups
-- @include cut
-- @include terms

local MAX_GROUPS = 1000

-- As `core/terms.py` writes it.
local function word_of(text)
  return (string.gsub(string.sub(text, 1, 64), "[^%w._~-]", function(letter)
    return string.format("%%%02X", string.byte(letter))
  end))
end

-- Numbers, addresses and what is in quotation marks differ from job to job.
local function shape_of(message)
  local shape = string.gsub(cut(message, 1000), '"[^"]*"', '"…"')
  shape = string.gsub(shape, "'[^']*'", "'…'")
  shape = string.gsub(string.gsub(shape, "%w+://%S+", "…"), "[^%s@]+@[^%s@]+", "…")
  return cut(string.gsub(shape, "%x*%d%x*", "#"), 300)
end

local function is_of_error(word)
  return string.find(word, "^error=") or string.find(word, "^group=")
end

-- The last error of a run, as JSON, and whether it failed for good.
local function group(run, err, is_dead, now)
  local is_read, decoded = pcall(cjson.decode, err)
  if not is_read or type(decoded) ~= "table" then decoded = {} end
  local class = type(decoded.type) == "string" and decoded.type or "?"
  drop_terms(run, is_of_error)
  local words = "error=" .. word_of(class)
  if is_dead then
    local shape = shape_of(type(decoded.message) == "string" and decoded.message or "")
    local name = string.sub(redis.sha1hex(class .. "\n" .. shape), 1, 12)
    if redis.call("HEXISTS", groups, name) == 0 and redis.call("HLEN", groups) >= MAX_GROUPS then
      shape, name = "…", string.sub(redis.sha1hex(class), 1, 12)
    end
    redis.call("HSETNX", groups, name, cjson.encode({ type = cut(class, 200), message = shape, since = now }))
    words = words .. " group=" .. name
  end
  index_terms(run, words)
end
