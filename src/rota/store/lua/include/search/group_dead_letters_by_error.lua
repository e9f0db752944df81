-- Groups dead letters by error: indexes them by the class of their last error. Dead letters with the same class and
-- the same message, except for numbers, addresses and quoted text, form a group. Beyond a thousand groups only the
-- class counts.
-- @include add_and_remove_search_terms
-- @include truncate_utf8

local MAX_GROUPS = 1000

-- Encodes a word as `core/job_index_terms.py` does.
local function search_word(text)
  return (string.gsub(string.sub(text, 1, 64), "[^%w._~-]", function(letter)
    return string.format("%%%02X", string.byte(letter))
  end))
end

-- Replaces numbers, addresses and quoted text, which differ from job to job. "%f[%w]" matches only where a word
-- begins: without it, a long word would be tried again from each of its characters.
local function message_pattern(message)
  local pattern = string.gsub(truncate_utf8(message, 1000), '"[^"]*"', '"…"')
  pattern = string.gsub(pattern, "'[^']*'", "'…'")
  pattern = string.gsub(pattern, "%f[%w]%w+://%S+", "…")
  pattern = string.gsub(pattern, "%f[^%z%s@][^%s@]+@[^%s@]+", "…")
  return truncate_utf8(string.gsub(pattern, "%f[%x]%x*%d%x*", "#"), 300)
end

local function is_of_error(word)
  return string.find(word, "^error=") or string.find(word, "^group=")
end

-- `err` is the last error of the run, as JSON; `is_dead` whether the run is a dead letter.
local function group_dead_letters_by_error(run, err, is_dead, now)
  local is_read, decoded = pcall(cjson.decode, err)
  if not is_read or type(decoded) ~= "table" then decoded = {} end
  local class = type(decoded.type) == "string" and decoded.type or "?"
  drop_terms(run, is_of_error)
  local words = "error=" .. search_word(class)
  if is_dead then
    local pattern = message_pattern(type(decoded.message) == "string" and decoded.message or "")
    local name = string.sub(redis.sha1hex(class .. "\n" .. pattern), 1, 12)
    if redis.call("HEXISTS", K.error_groups, name) == 0 and redis.call("HLEN", K.error_groups) >= MAX_GROUPS then
      pattern, name = "…", string.sub(redis.sha1hex(class), 1, 12)
    end
    local description = { type = truncate_utf8(class, 200), message = pattern, since = now }
    redis.call("HSETNX", K.error_groups, name, cjson.encode(description))
    words = words .. " group=" .. name
  end
  index_terms(run, words)
end
