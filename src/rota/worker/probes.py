"""What a worker tells those who watch it: /metrics for Prometheus, /healthz and /readyz for a service manager."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING

from rota.client import Rota
from rota.core.exposition import CONTENT_TYPE
from rota.worker.figures import Figures
from rota.worker.health import Health
from rota.worker.heartbeat import Heartbeat
from rota.worker.port import Answer, Port

if TYPE_CHECKING:
    from rota.worker.worker import Worker

logger = logging.getLogger("rota.worker")


@asynccontextmanager
async def probed(worker: Worker, rota: Rota, heartbeat: Heartbeat, figures: Figures | None) -> AsyncGenerator[None]:
    """Answers meanwhile, where a port was asked for. Raises ConfigurationError when nothing can listen there."""
    if figures is None or worker.config.metrics_port is None:
        yield
        return
    health = Health(worker, rota, heartbeat)
    worker.tower.watch = figures.landed

    async def metrics() -> Answer:
        return Answer(HTTPStatus.OK, CONTENT_TYPE, figures.exposition(health.ailments()))

    pages = {"/metrics": metrics, "/healthz": health.alive, "/readyz": health.ready}
    port = Port(worker.config.metrics_host, worker.config.metrics_port, pages)
    await port.open()
    logger.info("worker %s answers %s on %s", worker.id, ", ".join(pages), port.address)
    try:
        yield
    finally:
        port.close()
