"""A user's script as a provider: one call per verb, ids on its standard output.

    SCRIPT list                one machine per line: its id, and optionally pending, running or failed
    SCRIPT launch COUNT TOKEN  launches machines and prints their ids, one per line
    SCRIPT terminate ID        removes this machine; succeeds if it is gone

A script that exits with another code than 0, or does not end in time, has failed: the planner holds. Code 75 means
"try again later", as in sysexits.h: the planner makes no call for a while.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal

from rota.autoscaler.machine_provider import Machine, ProviderError, ProviderThrottled

TIMEOUT_S: Final = 60.0
_STATES: Final[Mapping[str, Literal["pending", "running", "failed"]]] = {
    "pending": "pending",
    "running": "running",
    "failed": "failed",
}
#: EX_TEMPFAIL
TRY_LATER: Final = 75
#: Bytes of a script's output that are read, and characters of its errors that are shown.
MAX_OUTPUT: Final = 2**20
MAX_ERROR: Final = 300


class ExecProvider:
    """Calls a script."""

    name = "exec"

    def __init__(self, script: str, *, timeout_s: float = TIMEOUT_S) -> None:
        self._script = script
        self._timeout_s = timeout_s

    async def machines(self) -> Sequence[Machine]:
        """`SCRIPT list`"""
        found: list[Machine] = []
        for line in await self._call("list"):
            machine_id, _, state = line.partition(" ")
            known = _STATES.get(state.strip() or "running")
            if known is None:
                raise ProviderError(f"{self._script} list: {state.strip()!r} is none of {', '.join(_STATES)}")
            found.append(Machine(id=machine_id, state=known))
        return found

    async def launch(self, count: int, token: str) -> Sequence[str]:
        """`SCRIPT launch COUNT TOKEN`"""
        return await self._call("launch", str(count), token)

    async def terminate(self, machine_id: str) -> None:
        """`SCRIPT terminate ID`"""
        await self._call("terminate", machine_id)

    async def protect(self, machine_ids: Collection[str]) -> None:
        """Does nothing: a script removes only what it is asked to."""

    async def close(self) -> None:
        """Does nothing."""

    async def _call(self, *words: str) -> list[str]:
        what = f"{self._script} {words[0]}"
        try:
            process = await asyncio.create_subprocess_exec(
                self._script,
                *words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=MAX_OUTPUT,
                start_new_session=True,
            )
        except OSError as error:
            raise ProviderError(f"{self._script} cannot be started: {error}") from error
        try:
            async with asyncio.timeout(self._timeout_s):
                output, errors = await process.communicate()
        except TimeoutError:
            raise ProviderError(f"{what} did not end within {self._timeout_s:g} s") from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        said = errors.decode(errors="replace").strip()[-MAX_ERROR:]
        if process.returncode == TRY_LATER:
            raise ProviderThrottled(f"{what}: {said or 'try again later'}")
        if process.returncode:
            raise ProviderError(f"{what} exited with code {process.returncode}: {said}")
        lines = (line.strip() for line in output.decode(errors="replace").splitlines())
        return [line for line in lines if line]
