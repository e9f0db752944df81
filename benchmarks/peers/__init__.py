"""One module for each queue that is measured. `benchmarks/peer_interface.py` says what is asked of it."""
