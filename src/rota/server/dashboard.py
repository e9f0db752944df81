"""Serves the dashboard: the files built by `make web`, and the same page for every path of the dashboard.

`<base>` in the page is set to the mount path, so that the same files work under any path. The content security policy
allows only files of this server.
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

#: The only inline elements are the styles that the page's own scripts add; they carry the page's nonce.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)
#: First path segments of the dashboard's pages; see `web/src/router.tsx`.
PAGES: Final = (
    "login",
    "jobs",
    "workflows",
    "dead",
    "schedules",
    "queues",
    "tasks",
    "operations",
    "tokens",
    "workers",
    "scaling",
    "locks",
    "audit",
)
#: For the terminal; the page below says the same at more length.
HOW_TO_BUILD: Final = "the dashboard is not built; run `make web` in the source tree and install again, or use a wheel"
NOT_BUILT: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Rota: the dashboard is not built</title>
<h1>The dashboard is not part of this installation</h1>
<p>Rota was installed from its sources, where the dashboard is not built. To get it, do one of these and restart the
server:
<ul>
<li>Install a wheel of Rota: wheels contain the dashboard.
<li>Run <code>make web</code> in the source tree. It installs Node into <code>.venv</code>. Then run the same
<code>pip install</code> command again; an editable installation needs only the restart.
</ul>
<p>Workers, the command line and the HTTP API work without it: see <a href="openapi.json">openapi.json</a>.
"""

router = APIRouter(tags=["dashboard"])

STATIC: Final = Path(str(resources.files("rota.server") / "static"))


def routes() -> list[Route | Mount]:
    """Returns the routes of pages and files. They are matched after the API's routes."""
    files = Mount("/assets", _HashedFiles(directory=STATIC / "assets", check_dir=False), name="assets")
    return [
        files,
        Route("/{name:str}.svg", show_file, methods=["GET"], include_in_schema=False),
        Route("/theme.js", show_file, methods=["GET"], include_in_schema=False),
        *(Route(f"/{page}", show_page, methods=["GET"], include_in_schema=False) for page in PAGES),
        *(Route(f"/{page}/{{rest:path}}", show_page, methods=["GET"], include_in_schema=False) for page in PAGES),
    ]


@router.get("/", response_class=HTMLResponse)
async def show_page(request: Request) -> Response:
    """Returns the dashboard's page. Its scripts choose the view by the path."""
    return _page_response(request, 200)


def wants_html(request: Request) -> bool:
    """True for a path opened in a browser that is neither part of the API nor a file of a page."""
    is_page = not any(part in request.url.path for part in ("/api/", "/assets/"))
    wants_page = request.method == "GET" and "text/html" in request.headers.get("accept", "")
    return is_page and wants_page and page() is not None


def show_not_found(request: Request) -> Response:
    """Returns the dashboard's page with status 404: its scripts show a not-found view."""
    return _page_response(request, 404)


def _page_response(request: Request, status: int) -> Response:
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
    """Returns a file whose name does not change between versions."""
    name = Path(request.url.path).name
    if name not in _files():
        raise HTTPException(404)
    return FileResponse(STATIC / name, headers={"Cache-Control": "no-cache"})


@cache
def _files() -> frozenset[str]:
    """Returns the names of the files beside the page. A path of a request never reaches the file system."""
    return frozenset(path.name for path in STATIC.glob("*") if path.is_file())


def is_built() -> bool:
    """True if the package contains the dashboard."""
    return page() is not None


@cache
def page() -> str | None:
    """Returns the built page; None if the dashboard has not been built."""
    index = STATIC / "index.html"
    return index.read_text(encoding="utf-8") if index.is_file() else None


class _HashedFiles(StaticFiles):
    """Files whose names contain a hash of their content, so that browsers may cache them permanently."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        if response.status_code == 200:
            response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response
