"""What is killed, stale or half written does not stop the embedded server from coming up with its data."""

from __future__ import annotations

import os
import shutil
import signal
import socket

import pytest
import redis

from rota.errors import StoreUnavailable
from tests.embedded.home import Home, connect, is_gone, kill
from tests.eventually import eventually_sync

#: Many small writes in one script, so that loading them again takes a while.
_FILL = "for i = 1, ARGV[1] do redis.call('SET', 'key' .. i, i) end"


def test_data_survives_the_kill_of_client_supervisor_and_server_at_once(home: Home) -> None:
    client = home.client()
    client.do("ensure")
    with home.redis() as connection:
        connection.set("kept", "1")

    kill(home.supervisor_pid(), home.server_pid())
    client.kill()

    with connect(home.server().ensure()) as connection:
        assert connection.get("kept") == b"1"


def test_half_a_command_at_the_end_of_the_append_only_file_is_dropped(home: Home) -> None:
    home.server().ensure()
    with home.redis() as connection:
        connection.set("kept", "1")
    kill(home.supervisor_pid(), home.server_pid())
    (log,) = (home.directory / "appendonlydir").glob("*.incr.aof")
    with log.open("ab") as file:
        file.write(b"*3\r\n$3\r\nSET\r\n$4\r\nha")

    with connect(home.server().ensure()) as connection:
        assert connection.keys() == [b"kept"]


def test_a_stale_socket_is_replaced(home: Home) -> None:
    home.directory.mkdir()
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(home.directory / "valkey.sock"))

    with connect(home.server().ensure()) as connection:
        assert connection.ping()


def test_a_killed_server_is_revived_by_ensure(home: Home) -> None:
    server, other = home.server(), home.client()
    url = server.ensure()
    other.do("ensure")
    with connect(url) as connection:
        connection.set("kept", "1")
    killed = home.server_pid()

    kill(killed)
    other.send("ensure")

    assert server.ensure() == other.answer() == url
    assert home.server_pid() != killed
    with connect(url) as connection:
        assert connection.get("kept") == b"1"


def test_a_server_that_lost_its_supervisor_gets_a_new_one_and_still_stops_in_the_end(home: Home) -> None:
    first, second = home.client(), home.client()
    first.do("ensure")
    server, supervisor = home.server_pid(), home.supervisor_pid()

    kill(supervisor)
    second.do("ensure")
    eventually_sync(lambda: home.supervisor_pid() != supervisor)
    assert home.server_pid() == server

    first.kill()
    second.kill()
    eventually_sync(lambda: is_gone(server))
    home.wait_until_stopped()


def test_a_supervisor_that_is_terminated_stops_its_server_in_order(home: Home) -> None:
    server = home.server()
    url = server.ensure()
    with connect(url) as connection:
        connection.set("kept", "1")
    before = home.server_pid()

    os.kill(home.supervisor_pid(), signal.SIGTERM)
    eventually_sync(lambda: is_gone(before))

    with connect(server.ensure()) as connection:
        assert connection.get("kept") == b"1"
    assert "ready to exit" in (home.directory / "valkey.log").read_text()


def test_a_supervisor_whose_connection_is_cut_keeps_supervising(home: Home) -> None:
    client = home.client()
    client.do("ensure")
    server, supervisor = home.server_pid(), home.supervisor_pid()

    with home.redis() as connection:
        connection.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        eventually_sync(lambda: len(connection.client_list()) == 2)  # ours, and the supervisor's new one

    assert (home.server_pid(), home.supervisor_pid()) == (server, supervisor)
    client.kill()
    eventually_sync(lambda: is_gone(server) and is_gone(supervisor))


def test_ensure_waits_for_a_server_that_is_loading_its_data(home: Home) -> None:
    keys = 400_000
    server = home.server()
    with connect(server.ensure()) as connection:
        connection.eval(_FILL, 0, keys)
    kill(home.server_pid())

    with connect(server.ensure()) as connection:
        assert connection.dbsize() == keys  # a server that is loading refuses to say


def test_a_removed_socket_costs_a_restart_and_no_data(home: Home) -> None:
    server = home.server()
    with connect(server.ensure()) as connection:
        connection.set("kept", "1")
    before = home.server_pid()

    (home.directory / "valkey.sock").unlink()

    with connect(server.ensure()) as connection:
        assert connection.get("kept") == b"1"
    assert is_gone(before)


def test_a_removed_directory_means_a_new_server_in_which_the_old_share_counts(home: Home) -> None:
    server = home.server()
    server.ensure()
    before = home.server_pid()

    shutil.rmtree(home.directory)
    eventually_sync(lambda: is_gone(before))

    with connect(server.ensure()) as connection:
        assert connection.dbsize() == 0
    assert home.has_clients()


def test_a_server_that_cannot_start_says_why_and_leaves_nothing_running(home: Home) -> None:
    server = home.server()
    server.ensure()
    kill(home.supervisor_pid(), home.server_pid())
    (manifest,) = (home.directory / "appendonlydir").glob("*.manifest")
    manifest.write_text("nonsense\n")

    with pytest.raises(StoreUnavailable, match=r"(?s)did not start.*AOF manifest"):
        server.ensure()

    assert not home.has_clients()
    home.wait_until_stopped()


def test_a_server_in_a_busy_script_still_stops_when_its_last_client_leaves(home: Home) -> None:
    client = home.client()
    url = client.do("ensure")
    pid = home.server_pid()
    with connect(url) as connection:
        connection.config_set("busy-reply-threshold", 10)
    with connect(url, timeout=0.1) as impatient, pytest.raises(redis.TimeoutError):
        impatient.eval("while true do end", 0)

    client.kill()

    eventually_sync(lambda: is_gone(pid))
