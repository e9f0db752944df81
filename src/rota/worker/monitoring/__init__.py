"""Monitoring of one worker: health, Prometheus metrics and logging."""
