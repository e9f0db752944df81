"""The store: the only code that knows keys, commands and Lua scripts."""
