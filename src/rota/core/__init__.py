"""The domain without I/O: values and decisions. No clock, randomness or logging."""
