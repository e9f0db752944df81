"""Hints name a command that works for the way Rota was installed."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from rota import install_command


def pretend(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Makes the metadata in that folder those of the installation."""

    def find(name: str) -> metadata.Distribution:
        assert name == "rota"
        return metadata.Distribution.at(folder)

    monkeypatch.setattr(install_command, "distribution", find)


@pytest.mark.parametrize(
    ("origin", "installer", "expected"),
    [
        (None, "pip", "pip install 'rota[server]'"),
        (None, "uv", "uv pip install 'rota[server]'"),
        ({"url": "file:///src/my%20rota", "dir_info": {}}, "pip", "pip install '/src/my rota[server]'"),
        ({"url": "file:///src/rota", "dir_info": {"editable": True}}, "pip", "pip install -e '/src/rota[server]'"),
        ({"url": "file:///d/rota-1.whl", "archive_info": {}}, "pip", "pip install '/d/rota-1.whl[server]'"),
        (
            {"url": "https://example.com/rota", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "pip",
            "pip install 'rota[server] @ git+https://example.com/rota@abc'",
        ),
    ],
)
def test_the_command_names_the_source_of_the_installation(
    origin: dict[str, Any] | None, installer: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "INSTALLER").write_text(f"{installer}\n")
    if origin is not None:
        (tmp_path / "direct_url.json").write_text(json.dumps(origin))
    pretend(monkeypatch, tmp_path)

    assert install_command.install_command("server") == expected


@pytest.mark.parametrize(
    ("marker", "expected"),
    [("pipx_metadata.json", "pipx install --force 'rota[cli]'"), ("uv-receipt.toml", "uv tool install 'rota[cli]'")],
)
def test_an_application_environment_is_extended_by_the_tool_that_made_it(
    marker: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / marker).touch()
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    pretend(monkeypatch, tmp_path)

    assert install_command.install_command("cli") == expected


def test_without_an_installation_the_name_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(install_command, "distribution", missing)

    assert install_command.install_command("otlp") == "pip install 'rota[otlp]'"
