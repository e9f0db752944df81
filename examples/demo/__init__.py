"""The demo: jobs of every kind on an embedded server, with live progress. `python -m examples.demo [--once]`."""
