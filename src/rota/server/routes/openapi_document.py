"""The OpenAPI document at `/openapi.json`. Public: it is the same for every installation."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request, Response

from rota.server.request_context_and_permissions import json_response
from rota.store.compute_in_thread import compute_in_thread


def add_route(app: FastAPI) -> None:
    """Serves the document of an application. It is built in a thread: on the event loop, 300 ms would block others."""

    async def show(request: Request) -> Response:
        document: dict[str, Any] = await compute_in_thread(app.openapi)
        prefix = request.scope.get("root_path", "").rstrip("/")
        return json_response({**document, "servers": [{"url": prefix}]} if prefix else document)

    app.add_route("/openapi.json", show, include_in_schema=False)
