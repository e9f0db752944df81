"""Who may call: tokens, authentication, the process of a local caller, and rate limits."""
