"""The ACL files of `deploy/acl`: each role can do its work under its user, and nothing else."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

import httpx2
import pytest
import redis

from rota.store.acl_rules import AclRole, acl_rule, commands_of
from tests.cli.driver import TASKS, Cli
from tests.cli.fork_server import ForkServer
from tests.cli.test_server import listening
from tests.docs.pages import ROOT
from tests.eventually import eventually_sync
from tests.servers import Kind, OwnServers, Server

ACL: Final = ROOT / "deploy" / "acl"
#: The user of the tests themselves.
DEFAULT: Final = "user default on nopass ~* &* +@all"
APP: Final = ("--app", "tasks:rota")


class Roles:
    """A server with the users of the ACL files, and `rota` as each of them."""

    def __init__(self, server: Server, fork_server: ForkServer, folder: Path) -> None:
        self.server = server
        self.cli = {role: Cli(fork_server, folder, "rota", self.url(role)) for role in AclRole}
        self.cli[AclRole.ADMIN].write(TASKS)

    def url(self, role: AclRole) -> str:
        """Where the user of a role logs in."""
        return self.server.url.replace("unix://", f"unix://rota-{role}:{role}@")

    def client(self, role: AclRole) -> redis.Redis:
        """A plain client that is logged in as the user of a role."""
        return redis.Redis(unix_socket_path=str(self.server.socket_path), username=f"rota-{role}", password=role.value)


@pytest.fixture(scope="module")
def fork_server() -> Iterator[ForkServer]:
    """Starts commands quickly."""
    fork_server = ForkServer()
    yield fork_server
    fork_server.close()


def started(own_server: OwnServers, kind: Kind, folder: Path) -> Server:
    """A server with the shipped files, and a password for each user."""
    users = [(ACL / f"{role}.acl").read_text().strip() + f" >{role}" for role in AclRole]
    file = folder / "users.acl"
    file.write_text("\n".join([DEFAULT, *users]) + "\n")
    file.chmod(stat.S_IRUSR | stat.S_IWUSR)
    return own_server(kind, aclfile=str(file))


@pytest.fixture(params=["valkey", "redis7"])
def roles(
    request: pytest.FixtureRequest, own_server: OwnServers, fork_server: ForkServer, tmp_path: Path
) -> Iterator[Roles]:
    """The users of the files, on each kind of server."""
    roles = Roles(started(own_server, request.param, tmp_path), fork_server, tmp_path)
    yield roles
    for cli in roles.cli.values():
        cli.close()


def test_programs_and_commands_work_under_the_users_of_their_roles(roles: Roles) -> None:
    producer, worker, api, reader, admin = (roles.cli[role] for role in AclRole)

    # A producer, and a worker that runs its jobs, one of which fails for good.
    added = producer.run("enqueue", "add", "1", "2", *APP).out.strip()
    sent = producer.run("enqueue", "send", "a@b.c", *APP).out.strip()
    producer.run("enqueue", "climb", "2", *APP)
    worker.start("worker", "tasks:rota", "--queues", "default,mail")
    eventually_sync(lambda: reader.json("job", "show", added)["state"] == "completed", timeout=60)
    eventually_sync(lambda: reader.json("job", "show", sent)["state"] == "failed", timeout=60)
    assert producer.run("enqueue", "add", "3", "4", "--wait", *APP).out.strip().endswith("7")

    # The HTTP server, with a token of the admin.
    token = admin.run("token", "create", "--role", "admin", "--name", "ci").out.strip()
    url = listening(api.start("server", "tasks:rota", "--port", "0", "--auth", "tokens"))
    with httpx2.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}) as http:
        keyed = {"Idempotency-Key": "k1"}
        made = http.post("/api/jobs", json={"type": "add", "data": [5]}, headers=keyed)
        assert made.status_code == 201, made.text
        for path in ("/api/jobs", "/api/overview", "/api/queues", "/api/workers", "/api/dead/groups", "/metrics"):
            assert http.get(path).status_code == 200, path
        assert http.post("/api/queues/default/pause").status_code == 200
        assert http.post("/api/queues/default/resume").status_code == 200
        assert http.post("/api/session", json={"token": token}).status_code == 201
        assert [entry["action"] for entry in http.get("/api/audit?who=ci").json()["entries"]].count("pause") == 1

    # Commands that read, and the checks of the doctor.
    for words in (["job", "list"], ["queue", "list"], ["dead", "list"], ["workers"], ["schedule", "list"]):
        reader.run(*words)
    assert "WARN   permissions       this user may only list and show" in reader.run("doctor").out
    for cli in (producer, worker, api, admin):
        assert "OK     permissions" in cli.run("doctor").out

    # Commands that administer.
    assert "ci" in admin.run("token", "list").out
    admin.run("dead", "redrive", sent)
    admin.run("queue", "pause", "mail")
    admin.run("bulk", "cancel", "--queue", "mail", "--yes")
    admin.run("queue", "purge", "mail", "--yes")
    admin.run("token", "revoke", admin.json("token", "list")["tokens"][0]["id"])


def test_each_user_is_refused_what_its_role_does_not_need(roles: Roles) -> None:
    roles.cli[AclRole.ADMIN].run("token", "create", "--role", "admin")
    refused: Final[dict[AclRole, list[list[str]]]] = {role: [] for role in AclRole}
    for role in AclRole:
        refused[role] += (
            ["CONFIG", "GET", "requirepass"],
            ["SCRIPT", "FLUSH"],
            ["FLUSHALL"],
            ["KEYS", "*"],
            ["SCAN", "0"],
            ["RANDOMKEY"],
            ["GET", "other:key"],
            ["SET", "other:key", "1"],
            ["PUBLISH", "other", "x"],
            ["ACL", "LIST"],
            ["MONITOR"],
            ["CLIENT", "LIST"],
            ["SHUTDOWN"],
            ["DUMP", "rota:{mail}:jobs"],
        )
    for role in (AclRole.PRODUCER, AclRole.WORKER, AclRole.READ_ONLY):
        refused[role] += (
            ["HGETALL", "rota:{~}:tokens"],
            ["HSET", "rota:{~}:tokens", "id", "{}"],
            ["HGETALL", "rota:{~}:token_uses"],
            ["GET", "rota:{~}:session:x"],
            ["GET", "rota:{~}:http_reply:x"],
            ["XRANGE", "rota:{~}:audit", "-", "+"],
            ["XADD", "rota:{~}:audit", "*", "entry", "x"],
            ["EVAL_RO", "return redis.call('HGETALL', KEYS[1])", "1", "rota:{~}:tokens"],
            ["EVAL_RO", "return redis.call('HGETALL', 'rota:{~}:tokens')", "0"],
        )
    refused[AclRole.API] += (["HSET", "rota:{~}:tokens", "id", "{}"], ["DEL", "rota:{~}:tokens"])
    refused[AclRole.PRODUCER] += (
        ["HSET", "rota:{~}:workers", "w", "{}"],
        ["HSET", "rota:{~}:tasks", "t", "{}"],
        ["EVAL", "return redis.call('ZADD', 'rota:{~}:operation_due', 1, 'x')", "0"],
    )
    refused[AclRole.READ_ONLY] += (
        ["HSET", "rota:{mail}:jobs", "run", "x"],
        ["EVAL", "return 1", "0"],
        ["EVAL_RO", "return redis.call('HSET', 'rota:{mail}:jobs', 'run', 'x')", "0"],
        ["UNLINK", "rota:{mail}:jobs"],
        ["SUBSCRIBE", "rota:inbox:worker"],
    )

    tried = [(role, *words) for role, commands in refused.items() for words in commands]
    granted = [(role, *words) for role, *words in tried if not _is_refused(roles, role, words)]

    assert granted == []


def _is_refused(roles: Roles, role: AclRole, words: list[str]) -> bool:
    with roles.client(role) as client:
        try:
            client.execute_command(*words)
        except redis.ResponseError as error:  # NoPermissionError, or what a script reports
            text = str(error).lower()
            return "permission" in text or "can't" in text or "acl failure" in text
    return False


def test_a_missing_permission_names_what_needs_it_and_what_to_do(roles: Roles) -> None:
    denied = roles.cli[AclRole.READ_ONLY].run("enqueue", "add", "1", *APP, code=5).err

    assert "lacks a permission" in denied
    assert "rota:{~}:format" in denied
    assert "`rota acl`" in denied

    unable = roles.cli[AclRole.PRODUCER].start("worker", "tasks:rota")
    _, log = unable.communicate(timeout=60)

    assert unable.returncode == 5, log
    assert "lacks a permission" in log
    assert "rota:{~}:" in log


def test_another_namespace_gets_users_and_keys_of_its_own(
    own_server: OwnServers, fork_server: ForkServer, tmp_path: Path
) -> None:
    server = own_server()
    cli = Cli(fork_server, tmp_path, "shop", server.url)
    cli.write(TASKS)
    rule = cli.run("acl", "producer").out.split()
    assert rule[:2] == ["user", "shop-producer"]
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", *rule[1:], ">pw")
    cli.environment["ROTA_URL"] = server.url.replace("unix://", "unix://shop-producer:pw@")

    cli.run("enqueue", "add", "1", *APP)
    denied = cli.run_bare("--namespace", "rota", "job", "list", code=5).err
    refused = cli.run_bare("acl", "worker", "--namespace", "a ~*", code=2).err

    assert "lacks a permission" in denied
    assert "is not 1 to 64 of" in refused


def test_every_command_that_the_stores_send_is_one_that_a_role_may_run(own_server: OwnServers) -> None:
    with own_server().client() as client:
        known = {name.decode() for name in cast(list[bytes], client.command_list())}
    sources = [
        path.read_text()
        for folder in ("store", "client", "monitoring", "server", "worker", "cli")
        for path in (ROOT / "src" / "rota" / folder).rglob("*.py")
    ]
    sent = {word.lower() for text in sources for word in re.findall(r'(?:[\[(]|^\s+)"([A-Z]{3,})"', text, re.MULTILINE)}
    permitted = {command.partition("|")[0] for role in AclRole for command in commands_of(role)}

    # AUTH needs no permission, CONFIG is optional, SENTINEL is for sentinels, SCAN for tests; READONLY is an error.
    unknown = (sent & known) - permitted - {"auth", "config", "sentinel", "scan", "readonly"}

    assert unknown == set()
    assert all("~rota:*" not in acl_rule(role, "rota") for role in AclRole)
