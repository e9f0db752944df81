"""A real nginx in front of the API, with its default settings."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Self

import pytest

from tests.eventually import eventually_sync

NGINX = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed: `apt-get install nginx-light`")
CONFIG = """
worker_processes 1;
daemon off;
{user}
pid {directory}/pid;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{ proxy_pass {target}; {settings} }}
    }}
}}
"""


class Nginx:
    """nginx that forwards to another address, on a free port."""

    def __init__(self, directory: Path, target: str, settings: str = "") -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        directory.mkdir()
        # Started by root it runs as www-data, as its package sets it up; otherwise as the user of the tests.
        user = "user www-data;" if os.getuid() == 0 else ""
        config = directory / "nginx.conf"
        config.write_text(
            CONFIG.format(directory=directory, port=self.port, target=target, settings=settings, user=user)
        )
        self._command = [str(NGINX), "-p", str(directory), "-c", str(config), "-e", str(directory / "error.log")]

    @property
    def url(self) -> str:
        """Returns the base URL."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually_sync(self._listens)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(10)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
