-- Parses and formats run records. A run record is one line about what has happened to a run: state claim worker
-- claimed_at score attempt failures stalls snoozes handbacks ended_at reason… "waiting" stands for scheduled, blocked
-- and pending, which the indexes distinguish, so promoting writes no record. A run that was never claimed has no run
-- record. Until the run ends, ended_at is "-", or "!" and how often its process died while it also ran other jobs.
local RECORD = "^(%S+) (%S+) (%S+) (%S+) (%S+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) ?(.*)$"

local function new_run_record(state, run_score)
  return {
    state = state, claim = "-", worker = "-", claimed_at = "-", score = run_score, attempt = 0, failures = 0,
    stalls = 0, snoozes = 0, handbacks = 0, ended_at = "-", reason = "",
  }
end

-- A damaged record counts as that of a waiting run, and a damaged score as the first: one bad value must not stop a
-- whole queue.
local function parse_run_record(line)
  local r = {}
  r.state, r.claim, r.worker, r.claimed_at, r.score, r.attempt, r.failures, r.stalls, r.snoozes, r.handbacks,
    r.ended_at, r.reason = string.match(line, RECORD)
  if not r.state then return new_run_record("waiting", "0") end
  if not tonumber(r.score) or not string.find(r.score, "^%-?%d") then r.score = "0" end
  return r
end

local function format_run_record(r)
  return table.concat({
    r.state, r.claim, r.worker, r.claimed_at, r.score, r.attempt, r.failures, r.stalls, r.snoozes, r.handbacks,
    r.ended_at, r.reason,
  }, " ")
end

-- Returns true if the run is in that state under this claim (fence and claim token).
local function is_claim(line, state, claim)
  if not line then return false end
  return string.find(line, state .. " " .. claim .. " ", 1, true) == 1
end
