"""Health checks."""

from __future__ import annotations

from typing import Literal

from rota.server.schemas.common import ResponseBody


class HealthResponse(ResponseBody):
    """The server and its store are available."""

    status: Literal["ok"]
    version: str
