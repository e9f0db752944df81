-- A job with a chosen id is enqueued: meets the unfinished run of that id, if there is one, and changes it where that is
-- what the caller wants and it is not at work. Says which run that is, what became of the wish ("again", "in_use",
-- "updated", or why it cannot be; nil where a follow-up is to be made, or there is no such run), and how many runs became
-- pending by it.
-- keys: follows, firsts
-- @include follow
-- @include followers
-- @include unfinished
-- @include update

local function meet(id, flags, token, priority, due, expiry, rest, now)
  local earlier_run = token ~= "" and redis.call("GET", firsts .. ":" .. token)
  if earlier_run then return earlier_run, "again", 0 end
  local holder, is_busy = unfinished(id)
  if not holder then return nil, nil, 0 end
  local refusal = (flags == "-" and "in_use") or mismatch(holder, rest)
  if refusal or is_busy then return holder, refusal, 0 end
  local freed = update(holder, flags, tonumber(priority), due, expiry, rest, now)
  local before_it = redis.call("HGET", follows, holder)
  if before_it then
    -- What any of the calls asked for is done when the follow-up merges into the run before it.
    local _, earlier = follower_of(before_it)
    follow(before_it, holder, earlier .. string.gsub(flags, "[" .. earlier .. "-]", ""))
  end
  if token ~= "" then redis.call("SET", firsts .. ":" .. token, holder, "PX", 86400000) end
  return holder, "updated", freed
end
