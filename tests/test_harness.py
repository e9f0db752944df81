"""The test suite's own tools: servers that can be killed, the leak check, waits with a deadline, the watchdog."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import redis

from tests.eventually import eventually, eventually_sync
from tests.leaks import delete_keys, leaked_keys
from tests.servers import OwnServers, Server, ServerDidNotStart

ROOT = Path(__file__).parent.parent


def nothing_is_permanent(key: str, namespace: str) -> bool:
    return False


def test_each_kind_of_server_answers(server: Server, request: pytest.FixtureRequest) -> None:
    with server.client() as client:
        info = client.info("server")
    assert ("valkey_version" in info) == ("valkey" in request.node.callspec.id)


def test_a_killed_server_comes_back_at_the_same_address_with_its_data(own_server: OwnServers) -> None:
    server = own_server(appendonly="yes", appendfsync="always")
    url, pid = server.url, server.pid
    with server.client() as client:
        client.set("kept", "1")

    server.restart()

    assert (server.url, server.pid != pid) == (url, True)
    with server.client() as client:
        assert client.get("kept") == b"1"


def test_a_tcp_server_keeps_its_port_over_a_restart(own_server: OwnServers) -> None:
    server = own_server(tcp=True, requirepass="se/cret")
    url = server.url

    server.stop()
    assert not server.is_running
    server.start()

    assert server.url == url
    with redis.Redis.from_url(url) as client:
        assert client.ping()


def test_a_paused_server_is_silent_until_it_is_resumed(own_server: OwnServers) -> None:
    server = own_server()
    server.pause()

    with server.client() as client:
        client.connection_pool.connection_kwargs["socket_timeout"] = 0.02
        with pytest.raises(redis.TimeoutError):
            client.ping()

    server.resume()
    with server.client() as client:
        assert client.ping()


def test_a_server_that_cannot_start_says_why(own_server: OwnServers) -> None:
    with pytest.raises(ServerDidNotStart, match="appendfsync"):
        own_server(appendfsync="perhaps")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=lambda how: how.name)
def test_a_server_dies_with_the_process_that_started_it(how: signal.Signals) -> None:
    script = (
        "import time\n"
        "from tests.servers import new_server\n"
        "server = new_server('valkey').start()\n"
        "print(server.pid, server.dir, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as owner:
        assert owner.stdout is not None
        pid, directory = owner.stdout.readline().split()
        assert psutil.pid_exists(int(pid))

        owner.send_signal(how)
        owner.wait(10)

    eventually_sync(lambda: _is_gone(int(pid)))
    eventually_sync(lambda: not Path(directory).exists())


def test_a_key_without_expiry_is_a_leak_unless_it_is_declared_permanent(server: Server) -> None:
    def is_permanent(key: str, namespace: str) -> bool:
        return key == f"{namespace}:queues"

    with server.client() as client:
        client.set("tleak1:{a}:forgotten", "1")
        client.set("tleak1:queues", "1")
        client.set("tleak1:soon-gone", "1", px=60_000)
        client.set("tleak2:{a}:of-another-test", "1")

        leaked = leaked_keys(client, "tleak1", is_permanent)
        delete_keys(client, "tleak1")
        left = leaked_keys(client, "tleak", nothing_is_permanent)
        delete_keys(client, "tleak2")

    assert leaked == ["tleak1:{a}:forgotten (string)"]
    assert left == ["tleak2:{a}:of-another-test (string)"]


async def test_eventually_returns_what_became_true() -> None:
    answers = iter([0, 0, 7])

    async def answer() -> int:
        return next(answers)

    assert await eventually(answer) == 7
    assert await eventually(lambda: "x") == "x"


def test_eventually_says_what_it_waited_for() -> None:
    counts: list[int] = []
    with pytest.raises(AssertionError, match=r"(?s)not true within 0\.01 s.*counts.*last: \[\]"):
        eventually_sync(lambda: counts, timeout=0.01)


async def test_eventually_ends_a_predicate_that_hangs() -> None:
    with pytest.raises(AssertionError, match="not true within"):
        await eventually(asyncio.Event().wait, timeout=0.02)


HANGING = """
import asyncio, ctypes, os, subprocess, threading, time
import pytest

def swallow():
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass

@pytest.fixture
def hanging_setup():
    swallow()

@pytest.fixture
def hanging_teardown():
    yield
    swallow()

def test_sleeps():
    time.sleep(60)

def test_waits_for_a_thread():
    thread = threading.Thread(target=time.sleep, args=[60], daemon=True)
    thread.start()
    thread.join()

def test_swallows_in_a_callback():
    async def main():
        asyncio.get_running_loop().call_soon(time.sleep, 60)  # the loop logs what a callback raises
        await asyncio.Event().wait()
    asyncio.run(main())

def test_swallows():
    subprocess.Popen(["sleep", os.environ["SLEEP"]], start_new_session=True)
    swallow()

def test_swallows_in_setup(hanging_setup):
    pass

def test_swallows_in_teardown(hanging_teardown):
    raise ValueError  # a failure cancels the timer of pytest-timeout

def test_holds_the_gil():
    mutex = ctypes.create_string_buffer(64)
    for _ in range(2):
        ctypes.PyDLL(None).pthread_mutex_lock(mutex)

def test_passes():
    pass

def test_leaves_a_thread_that_keeps_the_process_from_ending():
    threading.Thread(target=time.sleep, args=[60]).start()
"""


@pytest.mark.timeout(600)
def test_every_hanging_test_is_ended_and_the_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / "test_hanging.py").write_text(HANGING)
    options = ["-n4", "--timeout=2", "-owatchdog_repeat=3", "-owatchdog_grace=8", "-pno:asyncio", "-rA"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.watchdog", *options, "test_hanging.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SLEEP": (sleep := str(900_000 + os.getpid()))},
        capture_output=True,
        text=True,
    )

    outcomes = dict(
        re.findall(r"^(?:FAILED|ERROR) test_hanging.py::(\w+).*?(Timeout|crashed|$)", run.stdout, re.MULTILINE)
    )
    assert outcomes == {
        "test_sleeps": "Timeout",
        "test_waits_for_a_thread": "Timeout",
        "test_swallows_in_a_callback": "Timeout",
        "test_swallows": "crashed",
        "test_swallows_in_setup": "crashed",
        "test_swallows_in_teardown": "crashed",
        "test_holds_the_gil": "crashed",
    }, run.stdout + run.stderr
    assert len(re.findall(r"^PASSED", run.stdout, re.MULTILINE)) == 2
    assert re.search(r"watchdog: ending process \d+, which hangs in 'test_hanging.py::test_holds_the_gil", run.stderr)
    assert re.search(r'File ".*test_hanging.py", line \d+ in swallow', run.stderr)
    assert ["sleep", sleep] not in [process.info["cmdline"] for process in psutil.process_iter(["cmdline"])]


def test_a_process_that_waits_for_the_tests_of_others_does_not_hang(tmp_path: Path) -> None:
    (tmp_path / "test_two.py").write_text(
        "import time\n\ndef test_short():\n    pass\n\ndef test_long():\n    time.sleep(4)\n"
    )
    words = [sys.executable, "-m", "pytest", "-p", "tests.watchdog", "-n2", "--timeout=60", "-owatchdog_grace=1"]
    run = subprocess.run(
        [*words, "test_two.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )

    assert "2 passed" in run.stdout
    assert "watchdog" not in run.stderr


def _is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
