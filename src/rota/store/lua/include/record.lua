-- What has happened to a run, as one line of text:
--   state claim worker claimed_at place attempt failures stalls snoozes handbacks ended_at reason…
-- "waiting" stands for scheduled, blocked and pending, which the indexes tell apart: promoting writes no record.
-- A run that was never claimed has no such record.
local RECORD = "^(%S+) (%S+) (%S+) (%S+) (%S+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) ?(.*)$"

local function new_record(state, run_place)
  return {
    state = state, claim = "-", worker = "-", claimed_at = "-", place = run_place, attempt = 0, failures = 0,
    stalls = 0, snoozes = 0, handbacks = 0, ended_at = "-", reason = "",
  }
end

-- A line that cannot be read, damaged by hand, counts as nothing yet: one bad record must not stop a whole queue.
local function read_record(line)
  local r = {}
  r.state, r.claim, r.worker, r.claimed_at, r.place, r.attempt, r.failures, r.stalls, r.snoozes, r.handbacks,
    r.ended_at, r.reason = string.match(line, RECORD)
  return r.state and r or new_record("waiting", "0")
end

local function write_record(r)
  return table.concat({
    r.state, r.claim, r.worker, r.claimed_at, r.place, r.attempt, r.failures, r.stalls, r.snoozes, r.handbacks,
    r.ended_at, r.reason,
  }, " ")
end

-- True when this claim (fence and token) is the one that owns the run, in that state.
local function is_claim(line, state, claim)
  if not line then return false end
  return string.find(line, state .. " " .. claim .. " ", 1, true) == 1
end
