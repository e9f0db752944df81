"""`Blob`: a large argument of a job. It is stored in chunks, not in the arguments, and removed with the job."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import msgspec

from rota.core.lua_constants import BLOB_CHUNK_BYTES

T = TypeVar("T")


class BlobReference(msgspec.Struct, frozen=True, omit_defaults=True):
    """A blob as it stands among the arguments of its job."""

    #: Its name in the store.
    blob: str
    size: int
    name: str = ""
    is_encrypted: bool = False


class BlobReader(Protocol):
    """Reads blobs of one job. `blob_transfer.StoredBlobReader` is above this module."""

    def chunks(self, reference: BlobReference) -> AsyncGenerator[bytes]:
        """Yields the chunks of a blob."""
        ...

    def run_sync(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the background loop."""
        ...


class Blob:
    """A large argument: `await convert.enqueue(Blob.from_file("talk.mp4"))` for a parameter of type `Blob`.

    The data is stored in chunks before the job, and removed with it. The handler gets a `Blob` that reads the data when
    asked: `read`, `chunks` or `save`. Called directly, without a job, a task reads the data that it is given.
    """

    __slots__ = ("_data", "_reader", "_reference", "name", "size")

    def __init__(self, data: bytes | bytearray | memoryview, *, name: str = "") -> None:
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"Blob takes bytes, not {type(data).__name__}; Blob.from_file(path) reads a file")
        self._data: bytes | Path | None = bytes(data)
        self._reference: BlobReference | None = None
        self._reader: BlobReader | None = None
        #: What the data is called, for the handler. Not a path to write to: it may come from a user.
        self.name = name
        #: Number of bytes.
        self.size = len(self._data)

    @classmethod
    def from_file(cls, path: str | Path, *, name: str | None = None) -> Self:
        """Returns a blob with the content of a file, which is read when the job is enqueued. Raises OSError."""
        file = Path(path)
        blob = cls(b"", name=file.name if name is None else name)
        blob._data, blob.size = file, file.stat().st_size
        return blob

    async def read(self) -> bytes:
        """Returns all data. Raises BlobNotFound if the job no longer exists."""
        async with aclosing(self.chunks()) as chunks:
            return b"".join([chunk async for chunk in chunks])

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Yields the data in pieces, so that it is never in memory as a whole. Raises BlobNotFound."""
        if self._data is not None:
            pieces = self._pieces(self._data)
            while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
                yield piece
            return
        reader, reference = self._bound()
        async with aclosing(reader.chunks(reference)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def save(self, path: str | Path) -> None:
        """Writes the data to a file. Raises BlobNotFound, OSError."""
        with await asyncio.to_thread(Path(path).open, "wb") as file:
            async with aclosing(self.chunks()) as chunks:
                async for chunk in chunks:
                    await asyncio.to_thread(file.write, chunk)

    def read_sync(self) -> bytes:
        """`read`, for code that is not async."""
        return b"".join(self._pieces(self._data)) if self._data is not None else self._bound()[0].run_sync(self.read())

    def save_sync(self, path: str | Path) -> None:
        """`save`, for code that is not async."""
        if self._data is None:
            return self._bound()[0].run_sync(self.save(path))
        with Path(path).open("wb") as file:
            file.writelines(self._pieces(self._data))
        return None

    @property
    def is_local(self) -> bool:
        """True for a blob with data of its own: one that was created here, not one that a job has."""
        return self._data is not None

    def bind(self, reader: BlobReader) -> None:
        """Gives a stored blob its reader. Called by the worker."""
        self._reader = reader

    # Arguments are read and described as Pydantic models are, by these names.

    @classmethod
    def model_validate(cls, value: Any) -> Blob:
        """Returns the blob that a reference among the arguments stands for. Raises ValueError."""
        try:
            reference = msgspec.convert(value, BlobReference)
        except msgspec.ValidationError as error:
            raise ValueError("takes a Blob: pass Blob(data) or Blob.from_file(path)") from error
        blob = cls(b"", name=reference.name)
        blob._data, blob._reference, blob.size = None, reference, reference.size
        return blob

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        """The JSON Schema of a reference."""
        properties = {"blob": {"type": "string"}, "size": {"type": "integer"}, "name": {"type": "string"}}
        return {"title": "Blob", "type": "object", "properties": properties, "required": ["blob", "size"]}

    def _bound(self) -> tuple[BlobReader, BlobReference]:
        if self._reader is None or self._reference is None:
            raise RuntimeError(f"{self!r} can only be read by the handler of its job")
        return self._reader, self._reference

    @staticmethod
    def _pieces(data: bytes | Path) -> Iterator[bytes]:
        if isinstance(data, Path):
            with data.open("rb") as file:
                while piece := file.read(BLOB_CHUNK_BYTES):
                    yield piece
            return
        yield from (data[start : start + BLOB_CHUNK_BYTES] for start in range(0, len(data), BLOB_CHUNK_BYTES))

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        return f"<Blob{name} of {self.size:,} bytes>"


def find_blobs(value: Any) -> Iterator[Blob]:
    """Yields the blobs in lists, tuples and dicts."""
    if isinstance(value, Blob):
        yield value
    elif isinstance(value, dict):
        for item in value.values():  # pyright: ignore[reportUnknownVariableType]
            yield from find_blobs(item)
    elif isinstance(value, list | tuple):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from find_blobs(item)
