"""`rota server` and `rota token`, as processes."""

from __future__ import annotations

import json
import re
import signal
import subprocess

import httpx2

from tests.cli.driver import Cli, Hand


def listening(process: subprocess.Popen[str]) -> str:
    """The address that a server says it listens on."""
    assert process.stderr is not None
    for line in process.stderr:
        found = re.search(r"listening on (http://\S+)", line)
        if found:
            return found[1]
    raise AssertionError("it ended before it listened")


def test_the_server_serves_a_program_until_it_is_told_to_stop(cli: Cli) -> None:
    process = cli.start("server", "tasks:rota", "--port", "0")
    url = listening(process)

    made = httpx2.post(f"{url}/api/jobs", json={"type": "add", "data": [1, 2]}).json()
    refused = httpx2.post(f"{url}/api/jobs", json={"type": "add", "data": ["x"]})

    assert made["success"] is True
    assert refused.status_code == 422
    assert "Expected `int`" in refused.json()["message"]
    assert cli.json("job", "show", made["jobId"])["state"] == "pending"
    process.send_signal(signal.SIGTERM)
    assert process.wait(15) == 0


def test_port_may_come_from_the_environment_and_tokens_open_it(cli: Cli, hand: Hand) -> None:
    cli.environment["PORT"] = "0"
    token = cli.run("token", "create", "--role", "operator", "--name", "ci", "--queue", "mail").out.strip()
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
