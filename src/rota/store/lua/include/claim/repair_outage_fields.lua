-- Records which of the fields by which outages are detected is damaged. Returns 0 as the time when the server was
-- last seen: it counts as an outage that ends now, which is safe, and replaces both fields.
-- @include queue_key_prefix
-- @include record_repair

local function repair_outage_fields(last, grace_until)
  local function check(field, value)
    if value and not string.find(value, "^%d+$") then record_repair(queue_key_prefix, "meta " .. field, value) end
  end
  check("server_seen", last)
  check("grace_until", grace_until)
  return 0
end
