"""Deployment files of Rota: Docker Compose, Prometheus, Grafana, OpenTelemetry."""
