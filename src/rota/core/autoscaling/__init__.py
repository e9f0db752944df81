"""Autoscaling: how many workers are wanted, and which ones leave. Pure: no I/O, no clock.

    decision = desired(observation, policy, now_ms)

`observation.py` is the input, `policies.py` the settings, `decision.py` the function and its result,
`log_lines.py` the log lines. The caller observes, applies the decision, and keeps the history.
"""
