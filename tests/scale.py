"""How much the tests try: `make test` is for every change, `make test-long` for those to the store or the worker."""

from __future__ import annotations

import os
from typing import Final

IS_LONG: Final = bool(os.environ.get("ROTA_TEST_LONG"))
