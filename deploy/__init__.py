"""What runs and watches Rota in production: compose, Prometheus, Grafana."""
