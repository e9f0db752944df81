"""Serves the dashboard: the files that `make web` built, and one page for every path that a reader may open.

The page says where it is mounted (`<base>`), so that the same files work under any path. Everything it loads comes from
here, and its policy says so.
"""

from __future__ import annotations

import html
import secrets
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

#: Nothing is inline but the style elements that the page's own scripts add: they carry the page's nonce.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)
#: The first part of every path that the dashboard has a page for; see `web/src/router.tsx`.
PAGES: Final = (
    "login", "jobs", "workflows", "dead", "schedules", "queues", "workers", "locks", "audit",
)  # fmt: skip
NOT_BUILT: Final = """<!doctype html>
<title>Rota</title>
<p>The dashboard is not built here: run <code>make web</code> in the source tree, or install Rota from a wheel.
<p>The HTTP API works without it: see <a href="openapi.json">openapi.json</a>.
"""

router = APIRouter(tags=["dashboard"])

STATIC: Final = Path(str(resources.files("rota.server") / "static"))


def routes() -> list[Route | Mount]:
    """The pages and their files. They are tried after the API's own routes."""
    files = Mount("/assets", _Hashed(directory=STATIC / "assets", check_dir=False), name="assets")
    return [
        files,
        Route("/{name:str}.svg", show_file, methods=["GET"], include_in_schema=False),
        Route("/theme.js", show_file, methods=["GET"], include_in_schema=False),
        *(Route(f"/{page}", show_page, methods=["GET"], include_in_schema=False) for page in PAGES),
        *(Route(f"/{page}/{{rest:path}}", show_page, methods=["GET"], include_in_schema=False) for page in PAGES),
    ]


@router.get("/", response_class=HTMLResponse)
async def show_page(request: Request) -> Response:
    """The dashboard's page. What it shows is decided by its own scripts, from the path."""
    return _respond(request, 200)


def is_lost_reader(request: Request) -> bool:
    """True for somebody who opened an address in a browser: no part of the API, and no file of a page."""
    is_page = not any(part in request.url.path for part in ("/api/", "/assets/"))
    wants_page = request.method == "GET" and "text/html" in request.headers.get("accept", "")
    return is_page and wants_page and page() is not None


def show_lost(request: Request) -> Response:
    """The same page, which says that there is nothing at this address and where to go on."""
    return _respond(request, 404)


def _respond(request: Request, status: int) -> Response:
    built = page()
    if built is None:
        return HTMLResponse(NOT_BUILT, 503)
    mounted = html.escape(request.scope.get("root_path", "").rstrip("/") + "/", quote=True)
    nonce = secrets.token_urlsafe(16)
    text = built.replace('<base href="/" />', f'<base href="{mounted}" />')
    text = text.replace('<meta name="nonce" />', f'<meta name="nonce" nonce="{nonce}" />')
    headers = {"Content-Security-Policy": POLICY.format(nonce=nonce), "Cache-Control": "no-store"}
    return HTMLResponse(text, status, headers=headers)


async def show_file(request: Request) -> Response:
    """A file that stands beside the page, and keeps its name from version to version."""
    path = STATIC / Path(request.url.path).name
    if not path.is_file():
        raise HTTPException(404)
    return FileResponse(path, headers={"Cache-Control": "no-cache"})


@cache
def page() -> str | None:
    """The page as it was built; None where it was not."""
    index = STATIC / "index.html"
    return index.read_text(encoding="utf-8") if index.is_file() else None


class _Hashed(StaticFiles):
    """Files whose names say what is in them: they never change."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        if response.status_code == 200:
            response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response
