"""Uploads the blobs of calls before their jobs are enqueued, and reads them for handlers."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Coroutine, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Final, NamedTuple, TypeVar

from rota.client.blob import Blob, BlobReference
from rota.client.external_blobs import EXTERNAL
from rota.client.session import Session, Sessions
from rota.core.ids import JobRef
from rota.core.lua_constants import BLOB_CHUNK_BYTES
from rota.errors import BlobNotFound, InvalidArguments, InvalidJob, PayloadTooLarge, StoreError

logger = logging.getLogger("rota.client")
T = TypeVar("T")

#: Bytes of a blob in the server. Larger ones belong into a store of their own.
MAX_STORED_BYTES: Final = 64 * 2**20
#: Blobs of one job.
MAX_BLOBS: Final = 16
#: Written to the user's store between two renewals of the reservation: 64 MB at most.
_RENEWED_EVERY: Final = 256


class Upload(NamedTuple):
    """A blob to be stored, under the name that the arguments of its job have."""

    reference: BlobReference
    blob: Blob


def replace_blobs(
    sessions: Sessions, task: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], tuple[Upload, ...]]:
    """Returns arguments with references in the place of blobs, and the blobs to upload. Raises InvalidJob."""
    uploads: list[Upload] = []

    def replace(value: Any) -> Any:
        if isinstance(value, Blob):
            upload = Upload(_new_reference(sessions, task, value), value)
            uploads.append(upload)
            return upload.reference
        if isinstance(value, dict):
            return {key: replace(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
        if type(value) in (list, tuple):
            return [replace(item) for item in value]
        return value

    replaced, named = tuple(replace(value) for value in args), {name: replace(kwargs[name]) for name in kwargs}
    if len(uploads) > MAX_BLOBS:
        raise InvalidArguments(task, f"a job has at most {MAX_BLOBS} blobs, not {len(uploads)}")
    return replaced, named, tuple(uploads)


def _new_reference(sessions: Sessions, task: str, blob: Blob) -> BlobReference:
    if not blob.is_local:
        raise InvalidArguments(task, f"{blob!r} belongs to another job: pass Blob(await blob.read())")
    if sessions.blobs is None and blob.size > MAX_STORED_BYTES:
        error = PayloadTooLarge(f"{blob!r}, an argument of task {task!r},", blob.size, MAX_STORED_BYTES)
        error.add_note('Rota(blobs="s3://bucket/folder") keeps blobs of any size in a store of your own')
        raise error
    prefix = "c" if sessions.blobs is None else EXTERNAL
    return BlobReference(prefix + secrets.token_hex(16), blob.size, blob.name, sessions.codec is not None)


class BlobTransfer:
    """Moves blobs between a program and the store."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def upload(self, session: Session, queue: str, task: str, uploads: Iterable[Upload]) -> None:
        """Stores blobs, for a job of that queue which is enqueued next."""
        for reference, blob in uploads:
            if self._sessions.blobs is None:
                await self._upload_to_server(session, queue, task, reference, blob)
            else:
                await self._upload_to_external(session, queue, task, reference, blob)

    async def discard(self, session: Session, queue: str, uploads: Iterable[Upload]) -> None:
        """Removes blobs, except those that a job has taken. If the server is away, they expire."""
        try:
            await session.blobs.discard(queue, [upload.reference.blob for upload in uploads])
        except StoreError as error:
            logger.debug("blobs of queue %s were not discarded: %s", queue, error)

    async def _upload_to_server(
        self, session: Session, queue: str, task: str, reference: BlobReference, blob: Blob
    ) -> None:
        index = 0
        async with aclosing(self._stored_chunks(task, reference, blob)) as chunks:
            async for chunk in chunks:
                outcome = await session.blobs.append(queue, reference.blob, index, chunk)
                if outcome != "ok":
                    raise _not_taken(task)
                index += 1

    async def _upload_to_external(
        self, session: Session, queue: str, task: str, reference: BlobReference, blob: Blob
    ) -> None:
        external = self._sessions.blobs
        assert external is not None
        await session.blobs.reserve(queue, reference.blob)
        file = await external.open_for_writing(folder_of(self._sessions.namespace, queue), reference.blob)
        try:
            index = 0
            async with aclosing(self._stored_chunks(task, reference, blob)) as chunks:
                async for chunk in chunks:
                    await asyncio.to_thread(file.write, chunk + b"\n" if reference.is_encrypted else chunk)
                    index += 1
                    if index % _RENEWED_EVERY == 0:
                        await session.blobs.reserve(queue, reference.blob)
        finally:
            await asyncio.to_thread(file.close)
        await session.blobs.reserve(queue, reference.blob)

    async def _stored_chunks(self, task: str, reference: BlobReference, blob: Blob) -> AsyncGenerator[bytes]:
        """Yields chunks as they are stored: one at least, and encrypted where the program has a codec."""
        index = size = 0
        codec = self._sessions.codec
        async with aclosing(blob.chunks()) as chunks:
            async for chunk in chunks:
                size += len(chunk)
                yield chunk if codec is None else codec.encrypt(chunk, _bound_to(reference, index)).encode()
                index += 1
        if size != reference.size:
            raise InvalidArguments(task, f"{blob!r} had {size:,} bytes when it was read: the file was changed")
        if not index:
            yield b"" if codec is None else codec.encrypt(b"", _bound_to(reference, 0)).encode()


class StoredBlobReader:
    """Reads the blobs of one job, for its handler."""

    def __init__(self, sessions: Sessions, owner: JobRef) -> None:
        self._sessions = sessions
        self._owner = owner

    def run_sync(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the background loop."""
        return self._sessions.run_sync(coroutine)

    async def chunks(self, reference: BlobReference) -> AsyncGenerator[bytes]:
        """Yields the chunks of a blob. Raises BlobNotFound, Undecryptable."""
        index = size = 0
        async with aclosing(self._stored_chunks(reference)) as chunks:
            async for chunk in chunks:
                if reference.is_encrypted:
                    chunk = self._decrypted(reference, index, chunk)
                index, size = index + 1, size + len(chunk)
                yield chunk
        if size != reference.size:
            raise BlobNotFound(str(self._owner), reference.blob, f"only {size:,} of {reference.size:,} bytes are left")

    async def _stored_chunks(self, reference: BlobReference) -> AsyncGenerator[bytes]:
        if reference.blob.startswith(EXTERNAL):
            async with aclosing(self._external_chunks(reference)) as chunks:
                async for chunk in chunks:
                    yield chunk
            return
        for index in range(max(1, -(-reference.size // BLOB_CHUNK_BYTES))):
            yield await self._read(reference, index)

    async def _external_chunks(self, reference: BlobReference) -> AsyncGenerator[bytes]:
        external = self._sessions.blobs
        if external is None:
            reason = "it is in the store that Rota(blobs=…) of its producer names, and this program names none"
            raise BlobNotFound(str(self._owner), reference.blob, reason)
        await self._read(reference, None)
        folder = folder_of(self._sessions.namespace, self._owner.queue)
        found = (
            external.lines(folder, reference.blob)
            if reference.is_encrypted
            else external.pieces(folder, reference.blob, BLOB_CHUNK_BYTES)
        )
        try:
            async with aclosing(found) as chunks:
                async for chunk in chunks:
                    yield chunk.removesuffix(b"\n") if reference.is_encrypted else chunk
        except FileNotFoundError as error:
            raise BlobNotFound(str(self._owner), reference.blob, f"it is not in {external.url}") from error

    async def _read(self, reference: BlobReference, index: int | None) -> bytes:
        session = await self._sessions.checked()
        chunk = await session.blobs.read(self._owner.queue, self._owner.run or "", reference.blob, index)
        if chunk is None:
            reason = "the job no longer exists, or its arguments were copied from another job"
            raise BlobNotFound(str(self._owner), reference.blob, reason)
        return chunk

    def _decrypted(self, reference: BlobReference, index: int, chunk: bytes) -> bytes:
        codec = self._sessions.codec
        if codec is None:
            reason = "it is encrypted, and this program has no keys: set ROTA_ENCRYPTION_KEYS"
            raise BlobNotFound(str(self._owner), reference.blob, reason)
        return codec.decrypt(chunk.decode(), _bound_to(reference, index))


def folder_of(namespace: str, queue: str) -> str:
    """Returns the folder of a queue's blobs in the user's store. The names of shards contain `~`."""
    return f"{namespace}/{queue}"


def refuse_blobs(what: str, uploads: Iterable[Upload]) -> None:
    """Raises InvalidJob for calls that are stored without being enqueued."""
    if tuple(uploads):
        raise InvalidJob(f"{what} cannot have a Blob: enqueue a job that has it, or pass the name of a file that stays")


def _bound_to(reference: BlobReference, index: int) -> str:
    return f"chunk {index} of blob {reference.blob}"


def _not_taken(task: str) -> InvalidArguments:
    return InvalidArguments(
        task, "the blobs of this call were stored before: create the call again with task.call(…) for each enqueue"
    )
