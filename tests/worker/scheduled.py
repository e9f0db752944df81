"""A program with schedules. The test sets what it declares, and in which version, in the environment."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Final

from rota import Context, Rota

FOLDER: Final = Path(os.environ["ROTA_TEST_FOLDER"])
DECLARES: Final = os.environ.get("ROTA_TEST_DECLARES", "").split()
VERSION: Final = int(os.environ.get("ROTA_TEST_VERSION", "1"))

rota = Rota(namespace=os.environ["ROTA_TEST_NAMESPACE"], clock=os.environ.get("ROTA_TEST_CLOCK", ""))


@rota.task
async def report(ctx: Context, what: str) -> str:
    """Notes which job it was."""
    file = os.open(FOLDER / "notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{what} {ctx.job.ref.id}\n".encode())
    os.close(file)
    return what


if "second" in DECLARES:
    rota.every(1, name="second", args=["second"])(report)
if "nightly" in DECLARES:
    rota.cron("0 3 * * *", tz="Europe/Oslo", name="nightly", kwargs={"what": "nightly"}, version=VERSION)(report)
if "faster" in DECLARES:
    rota.every(timedelta(hours=1), name="nightly", kwargs={"what": "nightly"}, version=VERSION)(report)
if "wrong" in DECLARES:
    rota.every(60, name="wrong", args=[1, 2, 3])(report)
