-- Reports what the check of a queue's indexes found, and whether it may be repaired: `mode` is an argument of the
-- script, "check" or "repair".

local problems = {}

-- Adds a problem. Returns true if the caller is to repair it.
local function found_problem(run, index, what)
  problems[#problems + 1] = run
  problems[#problems + 1] = index
  problems[#problems + 1] = what
  return mode == "repair"
end

-- Adds a problem that no script can repair.
local function found_loss(run, index, what)
  found_problem(run, index, "!" .. what)
end
