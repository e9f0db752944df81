"""Rota's tests. They mirror `src/rota`; the servers they run on are in `servers.py`."""
