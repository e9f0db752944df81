"""What Rota costs: bytes, CPU and latency, measured on a server of its own."""
