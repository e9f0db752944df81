"""Monitoring of the whole system: alerts, the doctor and Prometheus metrics."""
