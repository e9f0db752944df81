"""Serving the files of the dashboard."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from fastapi import FastAPI

from rota import Rota
from rota.server import create_app, dashboard
from tests.server.api import Api, open_api

#: What the first page loads, and any page that is opened later.
FIRST_LIMIT = 170_000
CHUNK_LIMIT = 110_000
ROUTER = Path(__file__).parents[2] / "web" / "src" / "router.tsx"

pytestmark = pytest.mark.skipif(
    not (dashboard.STATIC / "index.html").is_file(), reason="the dashboard is not built: run `make web`"
)


@pytest.mark.parametrize("path", ["/", "/jobs", "/jobs/mail:welcome-7@000000001", "/workflows/order-1", "/login"])
async def test_every_path_of_the_dashboard_is_the_one_page(api: Api, path: str) -> None:
    response = await api.get(path)

    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["cache-control"] == "no-store"
    assert '<div id="root">' in response.text


def test_the_server_knows_every_path_of_the_router() -> None:
    paths = re.findall(r'path: "/(\w*)', ROUTER.read_text())

    assert set(paths) - {""} == set(dashboard.PAGES)


async def test_an_unknown_path_is_a_problem_as_ever(api: Api) -> None:
    await api.ask("GET", "/nowhere", status=404)
    await api.ask("GET", "/api/nowhere", status=404)
    assert (await api.get("/assets/../../app.py")).status_code == 404
    assert (await api.get("/assets/none.js")).status_code == 404
    assert (await api.get("/none.svg")).status_code == 404


async def test_who_opens_an_unknown_path_in_a_browser_gets_the_page_that_says_so(api: Api) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}

    response = await api.get("/nowhere/at/all", headers=browser)

    assert response.status_code == 404
    assert '<div id="root">' in response.text
    assert "default-src 'none'" in response.headers["content-security-policy"]
    for path in ("/api/nowhere", "/assets/none.js"):
        response = await api.get(path, headers=browser)
        assert (response.status_code, response.headers["content-type"]) == (404, "application/problem+json")
    assert (await api.post("/nowhere", headers=browser)).headers["content-type"] == "application/problem+json"


async def test_the_page_allows_nothing_but_its_own_files(api: Api) -> None:
    first, second = await api.get("/"), await api.get("/")

    policy = first.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    nonce = re.search(r"'nonce-([\w-]+)'", policy)
    assert nonce is not None
    assert f'<meta name="nonce" nonce="{nonce[1]}" />' in first.text
    assert nonce[1] not in second.text, "a nonce is used once"


async def test_files_with_a_content_hash_are_cached_permanently(api: Api) -> None:
    script = re.search(r'src="\./(assets/[^"]+\.js)"', (await api.get("/")).text)
    assert script is not None

    response = await api.get(f"/{script[1]}")

    assert response.status_code == 200
    assert "immutable" in response.headers["cache-control"]
    assert response.headers["content-type"].startswith(("text/javascript", "application/javascript"))


async def test_mounted_under_a_path_it_finds_its_files(rota: Rota) -> None:
    host = FastAPI()
    host.mount("/tools/rota", create_app(rota, auth="none"))
    async with open_api(host) as api:
        page = await api.get("/tools/rota/jobs")
        assert '<base href="/tools/rota/" />' in page.text
        script = re.search(r'src="\./(assets/[^"]+\.js)"', page.text)
        assert script is not None
        assert (await api.get(f"/tools/rota/{script[1]}")).status_code == 200


async def test_the_path_it_is_mounted_under_cannot_break_out_of_the_page(rota: Rota) -> None:
    app = create_app(rota, auth="none")
    app.root_path = '/"><script>alert(1)</script>'
    async with open_api(app) as api:
        assert "<script>alert" not in (await api.get("/")).text


async def test_without_its_files_it_says_how_to_build_them(
    api: Api, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(dashboard, "STATIC", tmp_path)
    dashboard.page.cache_clear()
    try:
        response = await api.get("/")
    finally:
        dashboard.page.cache_clear()

    assert response.status_code == 503
    assert "make web" in response.text


def test_what_a_browser_has_to_load_is_bounded() -> None:
    page = (dashboard.STATIC / "index.html").read_text()
    first = re.findall(r'(?:src|href)="\./(assets/[^"]+\.js)"', page)
    sizes = {
        f"assets/{file.name}": len(gzip.compress(file.read_bytes(), 9))
        for file in (dashboard.STATIC / "assets").glob("*.js")
    }

    assert sum(sizes[name] for name in first) <= FIRST_LIMIT
    assert {name: size for name, size in sizes.items() if name not in first and size > CHUNK_LIMIT} == {}
    assert sum(file.stat().st_size for file in dashboard.STATIC.rglob("*") if file.is_file()) < 3_000_000
