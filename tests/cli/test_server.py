"""`rota server` and `rota token`, as processes."""

from __future__ import annotations

import getpass
import json
import re
import signal
import socket
import ssl
import subprocess
from pathlib import Path

import httpx2

from tests.cli.driver import Cli, Hand
from tests.server.certificates import make_certificate


def listening(process: subprocess.Popen[str]) -> str:
    """The address that a server says it listens on."""
    assert process.stderr is not None
    for line in process.stderr:
        found = re.search(r"listening on (https?://\S+)", line)
        if found:
            return found[1]
    raise AssertionError("it ended before it listened")


def test_the_server_serves_a_program_until_it_is_stopped(cli: Cli) -> None:
    process = cli.start("server", "tasks:rota", "--port", "0")
    url = listening(process)

    made = httpx2.post(f"{url}/api/jobs", json={"type": "add", "data": [1, 2]}).json()
    refused = httpx2.post(f"{url}/api/jobs", json={"type": "add", "data": ["x"]})

    assert made["is_new"] is True
    assert refused.status_code == 422
    assert "Expected `int`" in refused.json()["detail"]
    assert cli.json("job", "show", made["jobId"])["state"] == "pending"
    process.send_signal(signal.SIGTERM)
    assert process.wait(15) == 0


def test_port_may_come_from_the_environment_and_tokens_open_it(cli: Cli, hand: Hand) -> None:
    cli.environment["PORT"] = "0"
    token = cli.run(
        "token", "create", "--role", "operator", "--name", "ci", "--queue", "mail", "--task", "send"
    ).out.strip()
    process = cli.start("--namespace", cli.namespace, "server", "--auth", "tokens", "--host", "0.0.0.0")
    url = listening(process).replace("0.0.0.0", "127.0.0.1")
    headers = {"Authorization": f"Bearer {token}"}

    assert httpx2.get(f"{url}/api/queues").status_code == 401
    assert httpx2.get(f"{url}/api/queues", headers=headers).status_code == 200
    made = httpx2.post(f"{url}/api/jobs", json={"type": "send", "queue": "mail"}, headers=headers)
    assert made.status_code == 201
    assert httpx2.post(f"{url}/api/jobs", json={"type": "send"}, headers=headers).status_code == 403


def test_a_port_that_is_taken_is_said_in_words(cli: Cli) -> None:
    first = cli.start("--namespace", cli.namespace, "server", "--port", "0")
    port = listening(first).rpartition(":")[2]

    answer = cli.run("server", "--port", port, code=6)

    assert "another --port" in answer.err


def test_tokens_are_made_listed_and_revoked(cli: Cli) -> None:
    made = cli.json("token", "create", "--role", "admin", "--name", "ada", "--expires", "30d")
    cli.run("token", "create", "--role", "viewer")

    listed = cli.json("token", "list")["tokens"]
    assert [(token["name"], token["role"]) for token in listed if token["name"] == "ada"] == [("ada", "admin")]
    assert made["token"] not in json.dumps(listed)
    assert made["token"].split("_", 2)[2] not in json.dumps(listed)
    assert "ada" in cli.run("token", "list").out
    assert "revoked" in cli.run("token", "revoke", made["id"]).out
    assert len(cli.json("token", "list")["tokens"]) == 1
    answer = cli.run("token", "revoke", made["id"], code=2)
    assert "rota token list" in answer.err
    assert "--role" in cli.run("token", "create", code=2).err
    cli.run("token", "create", "--role", "admin", "--expires", "0", code=2)


def test_where_traces_are_looked_at_may_come_from_the_environment(cli: Cli) -> None:
    cli.environment["ROTA_TRACE_URL"] = "https://tracing.example/trace/{trace_id}"
    url = listening(cli.start("server", "tasks:rota", "--port", "0"))

    assert httpx2.get(f"{url}/api/session").json()["trace_url"] == "https://tracing.example/trace/{trace_id}"


def test_a_link_that_leads_to_no_trace_is_refused_before_anything_is_served(cli: Cli) -> None:
    answer = cli.run("server", "--trace-url", "javascript:alert(1)", code=6)

    assert "https://tracing.example/trace/{trace_id}" in answer.err


def test_the_server_serves_https_with_files_named_in_the_environment(cli: Cli, tmp_path: Path) -> None:
    pair = make_certificate(tmp_path)
    cli.environment |= {"ROTA_TLS_CERT": str(pair.certificate), "ROTA_TLS_KEY": str(pair.key)}
    url = listening(cli.start("server", "tasks:rota", "--port", "0"))
    context = ssl.create_default_context(cafile=str(pair.certificate))

    assert url.startswith("https://")
    assert httpx2.get(f"{url}/api/session", verify=context).headers["strict-transport-security"]


def test_a_certificate_without_its_key_is_refused(cli: Cli, tmp_path: Path) -> None:
    pair = make_certificate(tmp_path)

    assert "belong together" in cli.run("server", "--tls-cert", str(pair.certificate), code=6).err
    answer = cli.run("server", "--tls-cert", str(pair.certificate), "--tls-key", str(tmp_path / "none"), code=6)
    assert "--tls-key" in answer.err
    assert "No such file" in answer.err


def test_changes_of_commands_are_in_the_audit_log(cli: Cli, hand: Hand) -> None:
    job = cli.run("enqueue", "add", "1", "--app", "tasks:rota").out.strip()
    cli.run("queue", "pause", "default")
    cli.run("queue", "resume", "default")
    cli.run("job", "cancel", job, "--reason", "a mistake", "--yes")
    limits = ("--requests-per-second", "2.5", "--burst", "7", "--enqueues-per-minute", "60")
    token = cli.json("token", "create", "--role", "admin", *limits)
    assert token["limits"] == {"requests_per_second": 2.5, "burst": 7, "enqueues_per_minute": 60}
    cli.run("queue", "purge", "default", "--yes")  # nothing is left to purge, so it is no change

    process = cli.start("--namespace", cli.namespace, "server", "--auth", "tokens", "--port", "0")
    headers = {"Authorization": f"Bearer {token['token']}"}
    url = listening(process)
    entries = httpx2.get(f"{url}/api/audit", headers=headers).json()["entries"]
    shown = httpx2.get(f"{url}/api/jobs/{job}", headers=headers).json()["job"]

    user = f"{getpass.getuser()} (command line)"
    assert [(entry["action"], entry["target"].split()[0]) for entry in reversed(entries)] == [
        ("pause", "queue"),
        ("resume", "queue"),
        ("cancel", "job"),
        ("create", "token"),
    ]
    assert {entry["who"] for entry in entries} == {user}
    assert {entry["source"] for entry in entries} == {socket.gethostname()}
    assert entries[1]["after"] == {"state": "CANCELLED", "reason": "a mistake"}
    assert token["token"] not in str(entries)
    assert shown["enqueued_by"] == user
