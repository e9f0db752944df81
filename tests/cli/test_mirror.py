"""`rota mirror`."""

from __future__ import annotations

import signal

from tests.cli.driver import Cli, Hand
from tests.eventually import eventually_sync
from tests.servers import Server


def test_a_copy_is_kept_and_restored(cli: Cli, hand: Hand, valkey: Server, redis7: Server) -> None:
    job = hand.add.enqueue_sync(1)
    process = cli.start("--namespace", cli.namespace, "mirror", "run", redis7.url)
    key = f"{cli.namespace}:{{default}}:mirrored"
    with redis7.client() as copy:
        eventually_sync(lambda: copy.hexists(key, str(job.run)), timeout=30)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode != 0
    cli.run("job", "delete", "--yes", job.id)

    assert "restored 1 job" in cli.run("mirror", "restore", redis7.url).out
    assert cli.json("job", "show", job.id)["state"] == "pending"


def test_a_server_without_a_copy_is_named(cli: Cli, redis7: Server) -> None:
    assert "there is no copy on this server" in cli.run("mirror", "restore", redis7.url, code=6).err
