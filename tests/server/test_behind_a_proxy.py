"""Without authentication a request of a proxy is not a local one, however little the proxy says about itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

from rota.server.auth.peer_process import peer_uid
from tests.server.api import open_api
from tests.server.live import Live
from tests.server.nginx import Nginx, needs_nginx


@needs_nginx
def test_a_request_through_nginx_with_default_settings_is_not_local(app: FastAPI, tmp_path: Path) -> None:
    with Live(app) as live, Nginx(tmp_path / "nginx", live.url) as nginx:
        direct = httpx2.get(f"{live.url}/api/session")
        forwarded = httpx2.get(f"{nginx.url}/api/session")

    assert direct.status_code == 200
    assert forwarded.status_code == 403
    assert forwarded.json()["code"] == "auth_is_off"


@needs_nginx
@pytest.mark.skipif(os.getuid() != 0, reason="only root can start nginx as another user")
def test_a_proxy_of_another_user_is_recognised_without_any_header(app: FastAPI, tmp_path: Path) -> None:
    hidden = 'proxy_http_version 1.1; proxy_set_header Connection "";'
    with Live(app) as live, Nginx(tmp_path / "nginx", live.url, hidden) as nginx:
        forwarded = httpx2.get(f"{nginx.url}/api/session")

    assert forwarded.status_code == 403
    assert "user" in forwarded.json()["detail"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start a process of another user")
def test_another_user_of_the_machine_is_not_an_admin(app: FastAPI) -> None:
    with Live(app) as live:
        program = f"import urllib.request; urllib.request.urlopen('{live.url}/api/session')"
        other = subprocess.run(
            ["/usr/bin/env", "python3", "-c", program], user="nobody", capture_output=True, text=True, check=False
        )
        own = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    if "Permission denied" in other.stderr:
        pytest.skip("another user cannot run Python here")
    assert "HTTP Error 403" in other.stderr
    assert own.returncode == 0


@pytest.mark.parametrize(
    "header", ["X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Forwarded", "Via", "CF-Connecting-IP"]
)
async def test_headers_of_proxies_are_recognised(app: FastAPI, header: str) -> None:
    async with open_api(app) as api:
        await api.ask("GET", "/api/session")
        await api.ask("GET", "/api/session", headers={header: "203.0.113.7"}, status=403)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has these tables")
def test_the_user_of_an_unknown_connection_is_unknown() -> None:
    assert peer_uid(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
