"""The user's own store for blobs, through fsspec: `Rota(blobs="s3://bucket/rota")`. Requires `rota[fsspec]`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Final

from rota.errors import ConfigurationError
from rota.install_command import install_command

#: How the name of a blob in the user's store begins: the scripts distinguish it from one in the server by that.
EXTERNAL: Final = "x"


class ExternalBlobs:
    """Files below one URL. Methods run in threads: what fsspec does may block.

    Raises ConfigurationError where fsspec, or what it needs for the URL, is not installed.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            core: Any = import_module("fsspec.core")
            self._files, self._root = core.url_to_fs(url)
        except ModuleNotFoundError as error:
            hint = install_command("fsspec") if error.name == "fsspec" else f"pip install {error.name}"
            raise ConfigurationError(f"blobs={url!r} requires {error.name}: {hint}") from error
        except ImportError as error:
            raise ConfigurationError(f"blobs={url!r}: {error}") from error
        except ValueError as error:
            raise ConfigurationError(f"blobs={url!r} is no URL that fsspec knows: {error}") from error

    async def open_for_writing(self, folder: str, blob: str) -> Any:
        """Returns an open file, to be written and closed in threads."""
        return await asyncio.to_thread(self._create, folder, blob)

    async def lines(self, folder: str, blob: str) -> AsyncGenerator[bytes]:
        """Yields the lines of a file, as an encrypted blob has them. Raises OSError."""
        async for line in self._pieces(folder, blob, _read_line):
            yield line

    async def pieces(self, folder: str, blob: str, size: int) -> AsyncGenerator[bytes]:
        """Yields a file in pieces of so many bytes. Raises OSError."""
        async for piece in self._pieces(folder, blob, partial(_read, size)):
            yield piece

    async def remove(self, folder: str, blobs: Sequence[str]) -> None:
        """Removes files. Those that do not exist are left out. Raises OSError."""
        await asyncio.to_thread(self._remove, folder, blobs)

    async def remove_all(self, folder: str) -> None:
        """Removes a folder with all files in it, if it exists. Raises OSError."""
        await asyncio.to_thread(self._remove_all, folder)

    async def _pieces(self, folder: str, blob: str, read: Callable[[Any], bytes]) -> AsyncGenerator[bytes]:
        file = await asyncio.to_thread(self._files.open, self._path(folder, blob), "rb")
        try:
            while piece := await asyncio.to_thread(read, file):
                yield piece
        finally:
            await asyncio.to_thread(file.close)

    def _create(self, folder: str, blob: str) -> Any:
        self._files.makedirs(f"{self._root}/{folder}", exist_ok=True)
        return self._files.open(self._path(folder, blob), "wb")

    def _remove(self, folder: str, blobs: Sequence[str]) -> None:
        for blob in blobs:
            try:
                self._files.rm_file(self._path(folder, blob))
            except FileNotFoundError:
                continue  # an upload that was reserved and never begun

    def _remove_all(self, folder: str) -> None:
        path = f"{self._root}/{folder}"
        if self._files.exists(path):
            self._files.rm(path, recursive=True)

    def _path(self, folder: str, blob: str) -> str:
        return f"{self._root}/{folder}/{blob}"


def _read_line(file: Any) -> bytes:
    return file.readline()


def _read(size: int, file: Any) -> bytes:
    return file.read(size)
