"""A producer over HTTP: `python -m tests.crash.chaos_http_producer <name> <seed> <jobs>`.

It repeats each request with the same Idempotency-Key until the API accepts it, whoever of the two dies in between.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Any, Final

from tests.crash.chaos_tasks import FOLDER
from tests.crash.journal import Journal

journal = Journal(FOLDER, "producer")
PAUSE_S: Final = 0.05


def main() -> None:
    """Posts jobs, one after another."""
    name, seed, jobs = sys.argv[1:]
    chance = random.Random(f"{seed} {name}")
    for number in range(int(jobs)):
        if (FOLDER / "stop").exists():
            break
        key = f"{name}-{number}"
        journal.write("sent", id=key, delay_s=0, parents=[], expected="completed", version=0)
        stored = _post(key, {"type": "work", "data": {"todo": {"seconds": chance.choice([0.0, 0.05]), "key": key}}})
        if stored is not None:
            job = {"job": stored["jobId"], "run": stored["job"]["run"]}
            journal.write("acknowledged", **job, expected="completed", version=0, parents=[])
        time.sleep(PAUSE_S)


def _post(key: str, body: dict[str, Any]) -> dict[str, Any] | None:
    """The reply to a POST, repeated until there is one; None if the driver ends the suite first."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    request = urllib.request.Request(f"{os.environ['ROTA_TEST_API']}/api/jobs", json.dumps(body).encode(), headers)
    while True:
        try:
            with urllib.request.urlopen(request, timeout=3) as reply:
                stored: dict[str, Any] = json.loads(reply.read())
                return stored
        except urllib.error.HTTPError as error:
            error.close()
            if error.code < 500 and error.code not in (409, 429):
                raise
        except (OSError, HTTPException):
            pass  # the API is away, or was killed while it answered
        journal.write("refused", id=key, error="http")
        if (FOLDER / "stop").exists():
            return None
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main()
