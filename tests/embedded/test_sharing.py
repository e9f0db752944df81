"""Who shares the embedded server, and when it stops."""

from __future__ import annotations

import os
import signal

import pytest

from rota.embedded import find_or_launch_shared_valkey as embedded
from rota.embedded.find_or_launch_shared_valkey import running_url
from tests.embedded.home import Client, Home, connect, is_gone, pid_of
from tests.eventually import eventually_sync


def test_processes_that_start_at_the_same_moment_share_one_server(home: Home) -> None:
    clients = [home.client() for _ in range(4)]

    for client in clients:
        client.send("ensure")
    urls = [client.answer() for client in clients]

    assert set(urls) == {f"unix://{home.directory}/valkey.sock"}
    with connect(urls[0]) as connection:
        pid = pid_of(connection)
    assert (home.directory / "server.lock").read_text() == f"{pid}\n"
    assert (home.directory / "valkey.log").read_text().count("just started") == 1


def test_the_server_stays_for_as_long_as_one_client_does(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "LINGER_S", 0.01)
    stays, leaves = home.server(), home.client()
    stays.ensure()
    pid = home.server_pid()
    leaves.do("ensure")

    leaves.exit()

    assert home.has_clients()
    assert home.server_pid() == pid


@pytest.mark.parametrize("leave", ["release", "exit", "kill"])
def test_the_server_stops_when_its_last_client_leaves(home: Home, leave: str) -> None:
    client = home.client()
    client.do("ensure")
    server, supervisor = home.server_pid(), home.supervisor_pid()

    leave_by(client, leave)

    eventually_sync(lambda: is_gone(server) and is_gone(supervisor))
    assert running_url(home.directory) is None
    assert not (home.directory / "valkey.sock").exists()


def test_the_data_outlives_the_server(home: Home) -> None:
    first = home.client()
    first.do("ensure")
    with home.redis() as connection:
        connection.set("kept", "1")

    first.exit()
    home.wait_until_stopped()
    home.client().do("ensure")

    with home.redis() as connection:
        assert connection.get("kept") == b"1"


def test_the_next_script_finds_the_server_of_the_one_before(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "LINGER_S", 60.0)
    first, second = home.server(), home.client()
    first.ensure()
    pid = home.server_pid()

    first.release()
    second.do("ensure")

    assert home.server_pid() == pid


def test_two_objects_in_one_process_count_as_two(home: Home) -> None:
    first, second = home.server(), home.server()
    assert first.ensure() == second.ensure() == first.ensure()

    first.release()
    assert home.has_clients()

    second.release()
    second.release()
    eventually_sync(lambda: not home.has_clients())


def test_a_forked_child_does_not_take_its_parents_share_away(home: Home) -> None:
    client = home.client()
    client.do("ensure")

    client.do("fork")  # the child also calls release()

    assert home.has_clients()


def test_a_client_that_arrives_while_the_server_is_stopping_waits_for_the_next_one(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "LINGER_S", 0.01)
    leaves, arrives = home.server(), home.client()
    with connect(leaves.ensure()) as connection:
        connection.set("kept", "1")
    stopping = home.server_pid()

    os.kill(stopping, signal.SIGSTOP)  # so that it takes as long to stop as we like
    leaves.release()
    eventually_sync(home.is_stopping)
    arrives.send("ensure")
    os.kill(stopping, signal.SIGCONT)

    with connect(arrives.answer()) as connection:
        assert pid_of(connection) != stopping
        assert connection.get("kept") == b"1"


def test_clients_that_arrive_in_the_moment_of_the_shutdown_always_get_a_working_server(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "LINGER_S", 0.01)
    rounds = 20
    pids: set[int] = set()
    for number in range(1, rounds + 1):
        server = home.server()
        with connect(server.ensure()) as connection:
            assert connection.incr("rounds") == number
            pids.add(pid_of(connection))
        server.release()
        # The supervisor holds the lock: it is stopping the server, has stopped it, or checks for clients.
        eventually_sync(lambda: home.has_clients() or running_url(home.directory) is None)

    assert len(pids) > 1


def test_scripts_that_come_and_go_at_random_always_get_a_working_server(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "LINGER_S", 0.001)
    rounds = 200
    server = home.server()
    for number in range(1, rounds + 1):
        with connect(server.ensure()) as connection:
            assert connection.incr("rounds") == number
        server.release()


def leave_by(client: Client, how: str) -> None:
    match how:
        case "release":
            client.do("release")
        case "exit":
            client.exit()
        case _:
            client.kill()
