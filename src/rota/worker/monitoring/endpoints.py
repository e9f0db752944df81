"""The HTTP endpoints of a worker: /metrics for Prometheus, /healthz and /readyz for a service manager."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING

from rota.client.rota import Rota
from rota.core.prometheus_text import CONTENT_TYPE
from rota.worker.monitoring.health import Health
from rota.worker.monitoring.http_server import HttpResponse, HttpServer
from rota.worker.monitoring.prometheus_metrics import WorkerMetrics

if TYPE_CHECKING:
    from rota.worker.run_loops_and_drain import Supervisor

logger = logging.getLogger("rota.worker")


@asynccontextmanager
async def serve_endpoints(supervisor: Supervisor, rota: Rota, metrics: WorkerMetrics | None) -> AsyncGenerator[None]:
    """Serves the endpoints inside the block, if a port is configured.

    Raises ConfigurationError when the port cannot be opened.
    """
    config = supervisor.config
    if metrics is None or config.metrics_port is None:
        yield
        return
    health = Health(supervisor, rota)

    async def render_metrics() -> HttpResponse:
        return HttpResponse(HTTPStatus.OK, CONTENT_TYPE, metrics.render(health.problems()))

    pages = {"/metrics": render_metrics, "/healthz": health.alive, "/readyz": health.ready}
    server = HttpServer(config.metrics_host, config.metrics_port, pages)
    await server.open()
    logger.info("worker %s serves %s on %s", supervisor.id, ", ".join(pages), server.address)
    try:
        yield
    finally:
        server.close()
