"""A simulator of autoscaling with virtual time: `make simulate`.

`traces.py` has the workloads, `simulator.py` the model of machines and queues, `scalers.py` the policies that are
compared, `oracle.py` the plan that knows the future, `report.py` the page `docs/autoscaling.md`.
"""
