"""The commands of `rota`, one module each."""
