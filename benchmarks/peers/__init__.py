"""One module for each queue that is measured. `benchmarks/contract.py` says what is asked of it."""
