"""The user's application, loaded for commands that need its tasks."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from rota.cli.common_options import Settings
from rota.errors import ConfigurationError

if TYPE_CHECKING:
    from rota.client.rota import Rota


@asynccontextmanager
async def application(app: str, settings: Settings) -> AsyncGenerator[Rota]:
    """Yields the application's own `Rota`, with its tasks and middleware, for one command."""
    from rota.worker.app_loader import load_app

    use_url(settings)
    rota = load_app(app)
    check_settings(app, settings, address=rota.address, namespace=rota.namespace)
    async with rota:
        await rota.check()
        yield rota


def use_url(settings: Settings) -> None:
    """Applies `--url` to the application as well, in this process and its children."""
    if settings.url:
        os.environ["ROTA_URL"] = settings.url


def check_settings(app: str, settings: Settings, *, address: str, namespace: str) -> None:
    """Refuses options that the application overrides, so that no job goes to another server or namespace."""
    from rota.store.redis.address import parse_address

    if settings.url and address != str(parse_address(settings.url)):
        raise ConfigurationError(f"--url has no effect: {app} sets its server to {address}")
    if settings.namespace and namespace != settings.namespace:
        raise ConfigurationError(f"--namespace has no effect: {app} sets it to {namespace!r}")
