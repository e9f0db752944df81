"""How much the tests try: `make test` is for every change, `make test-long` for those to the store or the worker."""

from __future__ import annotations

import os
import secrets
from typing import Final

IS_LONG: Final = bool(os.environ.get("ROTA_TEST_LONG"))


def random_seed() -> int:
    """Returns the seed of a random search: ROTA_TEST_SEED if set.

    `make test` repeats the same examples, so that a change fails for its own reasons only. `make test-long` searches
    among new ones.
    """
    given = os.environ.get("ROTA_TEST_SEED")
    if given:
        return int(given)
    return secrets.randbits(32) if IS_LONG else 1
