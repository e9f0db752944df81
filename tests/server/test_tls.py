"""HTTPS of the server: its certificate, what it adds to responses, and clients that never finish a handshake."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import httpx2
import pytest
from fastapi import FastAPI

from rota import Rota
from rota.errors import ConfigurationError
from rota.server import create_app
from rota.server.auth.api_tokens import Tokens
from rota.server.http import connection_limits_and_timeouts, tls_certificate_reload_and_handshakes
from rota.server.http.tls_certificate_reload_and_handshakes import TlsCertificate
from tests.eventually import eventually_sync
from tests.server.api import open_api
from tests.server.certificates import Pair, make_certificate
from tests.server.live import Live

HSTS = "strict-transport-security"


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return make_certificate(tmp_path)


def trusting(*pairs: Pair) -> ssl.SSLContext:
    """A client's context that trusts these certificates only."""
    context = ssl.create_default_context()
    for pair in pairs:
        context.load_verify_locations(pair.certificate)
    return context


def certificate_of(live: Live) -> bytes:
    """The certificate that the server shows to a new client."""
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", live.port), timeout=30))


@pytest.mark.parametrize("loop", ["auto", "asyncio"])
def test_requests_are_served_over_https(app: FastAPI, pair: Pair, loop: Literal["auto", "asyncio"]) -> None:
    with Live(app, loop=loop, tls=TlsCertificate(*map(str, pair))) as live:
        with httpx2.Client(verify=trusting(pair), base_url=live.url) as client:
            made = client.post("/api/jobs", json={"type": "example", "data": {"text": "x" * 100_000}})
            shown = client.get(f"/api/jobs/{made.json()['jobId']}")
        with pytest.raises(httpx2.TransportError):
            httpx2.get(live.url.replace("https", "http"))

    assert made.status_code == 201
    assert len(shown.json()["job"]["data"]) > 100_000
    assert shown.headers[HSTS] == "max-age=31536000"


def test_a_request_that_arrives_with_the_handshake_is_answered(app: FastAPI, pair: Pair) -> None:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting(pair).wrap_bio(to_client, to_server, server_hostname="localhost")
    with (
        Live(app, tls=TlsCertificate(*map(str, pair))) as live,
        socket.create_connection(("127.0.0.1", live.port), timeout=30) as connection,
    ):
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                connection.sendall(to_server.read())
                to_client.write(connection.recv(100_000))
        client.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        connection.sendall(to_server.read())  # the end of the handshake and the request in one segment
        received = b""
        while not received:
            to_client.write(connection.recv(100_000) or pytest.fail("closed without a response"))
            try:
                received = client.read()
            except ssl.SSLWantReadError:
                continue

    assert received.startswith(b"HTTP/1.1 200")


def test_session_cookies_are_sent_over_https_only(rota: Rota, pair: Pair) -> None:
    with Live(create_app(rota), tls=TlsCertificate(*map(str, pair))) as live:
        # The server's loop owns the client's connections, so the token is created with another client.
        token = _create_token(rota)
        with httpx2.Client(verify=trusting(pair), base_url=live.url) as client:
            opened = client.post("/api/session", json={"token": token})
            closed = client.delete("/api/session", headers={"X-CSRF-Token": opened.json()["csrf"]})

    assert "Secure" in opened.headers["set-cookie"]
    assert "Secure" in closed.headers["set-cookie"]


def _create_token(rota: Rota) -> str:
    async def create() -> str:
        other = Rota(rota.address, namespace=rota.namespace)
        try:
            return (await Tokens(other).create("admin"))[0]
        finally:
            await other.close()

    return asyncio.run(create())


async def test_hsts_is_not_sent_over_http_nor_below_another_application(app: FastAPI) -> None:
    async with open_api(app) as api:
        assert HSTS not in (await api.request("GET", "/healthz")).headers

    outer = FastAPI()
    outer.mount("/rota", app)
    transport = httpx2.ASGITransport(outer)
    async with httpx2.AsyncClient(transport=transport, base_url="https://shop.example") as client:
        response = await client.get("/rota/healthz")
        assert response.status_code == 200
        assert HSTS not in response.headers


def test_a_trusted_proxy_that_ended_tls_counts_as_https(app: FastAPI) -> None:
    with Live(app, trusted_proxies=["127.0.0.0/8"]) as live:
        plain = httpx2.get(f"{live.url}/healthz")
        forwarded = httpx2.get(f"{live.url}/healthz", headers={"X-Forwarded-Proto": "https"})

    assert HSTS not in plain.headers
    assert HSTS in forwarded.headers


@pytest.mark.parametrize("trusted", [[], ["192.0.2.1"]])
def test_a_proxy_that_is_not_trusted_does_not_count_as_https(app: FastAPI, trusted: list[str]) -> None:
    with Live(app, trusted_proxies=trusted) as live:
        assert HSTS not in httpx2.get(f"{live.url}/healthz", headers={"X-Forwarded-Proto": "https"}).headers


def test_a_renewed_certificate_is_used_without_a_restart(
    app: FastAPI, pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_certificate_reload_and_handshakes, "LOOK_S", 0.05)
    (tmp_path / "new").mkdir()
    renewed = make_certificate(tmp_path / "new")
    with Live(app, tls=TlsCertificate(*map(str, pair))) as live, ExitStack() as clients:
        before = certificate_of(live)
        client = clients.enter_context(httpx2.Client(verify=trusting(pair, renewed), base_url=live.url))
        client.get("/healthz")

        renewed.certificate.replace(pair.certificate)
        renewed.key.replace(pair.key)

        eventually_sync(lambda: certificate_of(live) != before)
        assert client.get("/healthz").status_code == 200  # on the connection with the previous certificate


def test_a_renewal_that_cannot_be_used_keeps_the_previous_certificate(
    app: FastAPI, pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tls_certificate_reload_and_handshakes, "LOOK_S", 0.05)
    other = make_certificate(tmp_path, name="other")
    with Live(app, tls=TlsCertificate(*map(str, pair))) as live, caplog.at_level(logging.ERROR, "rota.server"):
        before = certificate_of(live)

        other.key.replace(pair.key)

        eventually_sync(lambda: "is not the key of" in caplog.text)
        assert certificate_of(live) == before


@pytest.mark.parametrize("loop", ["auto", "asyncio"])
def test_clients_that_never_finish_a_handshake_keep_no_other_client_out(
    app: FastAPI, pair: Pair, monkeypatch: pytest.MonkeyPatch, loop: Literal["auto", "asyncio"]
) -> None:
    monkeypatch.setattr(connection_limits_and_timeouts, "MAX_CONNECTIONS", 8)
    with Live(app, loop=loop, tls=TlsCertificate(*map(str, pair))) as live, ExitStack() as clients:
        for _ in range(50):
            clients.enter_context(socket.create_connection(("127.0.0.1", live.port)))

        assert httpx2.get(f"{live.url}/healthz", verify=trusting(pair)).status_code == 200
        eventually_sync(lambda: live.connections <= 8)


def test_a_handshake_that_does_not_end_in_time_ends_its_connection(
    app: FastAPI, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_certificate_reload_and_handshakes, "HANDSHAKE_S", 0.2)
    with Live(app, tls=TlsCertificate(*map(str, pair))) as live:
        with socket.create_connection(("127.0.0.1", live.port), timeout=60) as client:
            assert client.recv(100) == b""
        eventually_sync(lambda: live.connections == 0)


def test_a_certificate_that_cannot_be_used_is_explained(tmp_path: Path, pair: Pair) -> None:
    (tmp_path / "text").write_text("no PEM")
    (tmp_path / "folder").mkdir()
    broken = tmp_path / "broken.key"
    broken.write_text("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    other = make_certificate(tmp_path, name="other")
    expired = make_certificate(tmp_path, name="expired", days=-1)
    encrypted = make_certificate(tmp_path, name="encrypted", password=b"x")
    cases = {
        (tmp_path / "none.crt", pair.key): "--tls-cert .*none.crt cannot be read: No such file",
        (pair.certificate, tmp_path / "none.key"): "--tls-key .*none.key cannot be read: No such file",
        (pair.certificate, tmp_path / "folder"): "--tls-key .* cannot be read: Is a directory",
        (pair.certificate, tmp_path / "text"): "--tls-key .* is not a PEM file",
        (pair.certificate, other.key): "other.key is not the key of --tls-cert",
        (pair.certificate, broken): "cannot be used",
        (pair.key, pair.key): "cannot be used",
        tuple(expired): "expired.crt has expired: renew it",
        tuple(encrypted): "encrypted.key is encrypted: decrypt it",
    }
    for (certificate, key), message in cases.items():
        with pytest.raises(ConfigurationError, match=message):
            TlsCertificate(str(certificate), str(key))
