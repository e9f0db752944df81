-- Runs have ended and no handler of theirs is at work any more: whoever waited for that goes on. Says how many runs
-- became pending. It comes before `finish`, which may forget them.
-- keys: locked, followers, parents
-- @rare hand_on

local function depart(gone, outcome, now)
  if #gone == 0 or redis.call("EXISTS", parents, locked, followers) == 0 then return 0 end
  return hand_on(gone, outcome, now)
end
