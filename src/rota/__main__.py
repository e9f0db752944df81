"""`python -m rota`: the same as `rota`, where the console script is not on the path."""

from __future__ import annotations

from rota.cli.main import main

main()
