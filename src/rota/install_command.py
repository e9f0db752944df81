"""How to install an extra that is missing: the command depends on how Rota itself was installed."""

from __future__ import annotations

import json
import shlex
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

DISTRIBUTION: Final = "rota"


def install_command(extra: str) -> str:
    """Returns the command that installs an extra, such as `pip install 'rota[server]'`.

    Installations from a folder, a file or a repository are not on an index under this name, so the command names the
    same source again.
    """
    try:
        installed = distribution(DISTRIBUTION)
    except PackageNotFoundError:  # imported from a source tree that was never installed
        return f"pip install {shlex.quote(f'{DISTRIBUTION}[{extra}]')}"
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return f"{_installer(installed)} {editable}{shlex.quote(_requirement(origin, extra))}"


def _installer(installed: Distribution) -> str:
    """Returns the command of the tool that created this environment or installed Rota."""
    if Path(sys.prefix, "pipx_metadata.json").is_file():
        return "pipx install --force"
    if Path(sys.prefix, "uv-receipt.toml").is_file():
        return "uv tool install"
    is_uv = (installed.read_text("INSTALLER") or "").strip() == "uv"
    return "uv pip install" if is_uv else "pip install"


def _requirement(origin: dict[str, Any], extra: str) -> str:
    url: str = origin.get("url", "")
    if not url:
        return f"{DISTRIBUTION}[{extra}]"
    if url.startswith("file:"):
        return f"{unquote(urlsplit(url).path)}[{extra}]"
    vcs = origin.get("vcs_info", {})
    address = f"{vcs['vcs']}+{url}@{vcs.get('requested_revision') or vcs['commit_id']}" if vcs else url
    return f"{DISTRIBUTION}[{extra}] @ {address}"
