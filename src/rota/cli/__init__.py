"""The `rota` command line."""
