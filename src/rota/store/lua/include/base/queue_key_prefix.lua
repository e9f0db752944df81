-- The key prefix of the queue, which all its keys begin with: "rota:{mail}:". Keys that many scripts need and few
-- calls touch are made from it: passed in KEYS, they would travel with every call.
local queue_key_prefix = string.sub(K.meta, 1, -#"meta" - 1)
