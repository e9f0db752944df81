"""A program that reports to Sentry, if the environment names a receiver."""

from __future__ import annotations

import os
import signal

import sentry_sdk

from rota import Cancel, Context, Retry, RetryLater, Rota, Snooze

if "ROTA_TEST_SENTRY" in os.environ:
    from rota.sentry import RotaIntegration

    sentry_sdk.init(os.environ["ROTA_TEST_SENTRY"], integrations=[RotaIntegration()], include_local_variables=False)

rota = Rota(namespace=os.environ["ROTA_TEST_NAMESPACE"])


@rota.task(retry=Retry(attempts=2, backoff=[0.01]))
async def fail(secret: str) -> None:
    """Fails twice, with a tag of its own."""
    sentry_sdk.set_tag("length", len(secret))
    raise ValueError("no")


@rota.task(run_in="process", max_stalls=0)
def crash() -> None:
    """Kills its process."""
    os.kill(os.getpid(), signal.SIGKILL)


@rota.task
async def later(context: Context) -> None:
    """Raises each of the signals that are no errors."""
    if context.attempt == 1:
        raise Snooze(0.01)
    if context.attempt == 2:
        raise RetryLater(after=0.01)
    raise Cancel
