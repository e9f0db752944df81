-- Returns whether a blob is in the user's store. Its name begins with "x" then.

local function is_external_blob(blob) return string.sub(blob, 1, 1) == "x" end
