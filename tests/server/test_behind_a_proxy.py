"""Behind a proxy: its requests are not local ones, and it names the source of a request only if it is trusted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

from rota import Rota
from rota.errors import ConfigurationError
from rota.server.auth.api_tokens import Role, Tokens
from rota.server.auth.peer_process import peer_uid
from rota.server.settings import trusted_proxies
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


#: The address that the client of nginx connects from; it is not the one of nginx.
CLIENT = "127.0.0.2"
APPENDED = "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;"


async def recorded_source(guarded: FastAPI, rota: Rota, url: str) -> str | None:
    """The source in the audit log of a failed login whose client claims another address."""
    with httpx2.Client(transport=httpx2.HTTPTransport(local_address=CLIENT)) as client:
        forged = {"X-Forwarded-For": "203.0.113.7"}
        response = client.post(f"{url}/api/session", json={"token": "wrong"}, headers=forged)
    assert response.status_code == 401, response.text
    text, _ = await Tokens(rota).create(Role.ADMIN)
    async with open_api(guarded, token=text) as api:
        (entry,) = (await api.ask("GET", "/api/audit"))["entries"]
    return entry["source"]


@needs_nginx
@pytest.mark.parametrize("settings", ["", APPENDED], ids=["default settings", "appended"])
@pytest.mark.parametrize("trusted", [[], ["192.0.2.1"]], ids=["no trusted proxy", "another trusted proxy"])
async def test_a_client_of_nginx_cannot_choose_its_source(
    guarded: FastAPI, rota: Rota, tmp_path: Path, settings: str, trusted: list[str]
) -> None:
    with Live(guarded, trusted_proxies=trusted) as live, Nginx(tmp_path / "nginx", live.url, settings) as nginx:
        assert await recorded_source(guarded, rota, nginx.url) == "127.0.0.1"


@needs_nginx
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.0.0.0/8")
async def test_a_trusted_nginx_names_the_source_and_its_client_cannot(
    guarded: FastAPI, rota: Rota, tmp_path: Path
) -> None:
    with (
        Live(guarded, trusted_proxies=["127.0.0.1"]) as live,
        Nginx(tmp_path / "nginx", live.url, APPENDED) as nginx,
    ):
        assert await recorded_source(guarded, rota, nginx.url) == CLIENT


@pytest.mark.parametrize("text", ["*", "proxy.example", "10.0.0.1/24", "10.0.0.1 10.0.0.2"])
def test_a_trusted_proxy_is_an_address_or_a_network(text: str) -> None:
    with pytest.raises(ConfigurationError, match="not the address or network of a proxy"):
        trusted_proxies(text)

    assert trusted_proxies("10.0.0.1, 10.1.0.0/16,,::1") == ["10.0.0.1", "10.1.0.0/16", "::1"]
