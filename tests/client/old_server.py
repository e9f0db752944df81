"""A server that answers as a Redis too old for Rota would: it knows plain commands, but no flags in scripts."""

from __future__ import annotations

import asyncio
from typing import Final

REFUSAL: Final = "-ERR Error compiling script (new function): user_script:1: unexpected symbol near '#' \r\n"
ANSWERS: Final = {
    "PING": "+PONG\r\n",
    "CLIENT": "+OK\r\n",
    "SELECT": "+OK\r\n",
    "GET": "$-1\r\n",
    "SET": "+OK\r\n",
    "SADD": ":1\r\n",
    "SMEMBERS": "*0\r\n",
    "EVALSHA": "-NOSCRIPT No matching script. Please use EVAL.\r\n",
    "EVAL": REFUSAL,
}
WRITES: Final = {"SET", "SADD", "HSET", "ZADD", "DEL"}


class OldServer:
    """Listens on a free port of the loopback while it is entered."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def writes(self) -> list[str]:
        """The commands that would have changed something."""
        return [command for command in self.heard if command in WRITES]

    async def __aenter__(self) -> OldServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                words: list[str] = []
                for _ in range(int(line[1:])):
                    length = int((await reader.readline())[1:])
                    words.append((await reader.readexactly(length + 2))[:-2].decode())
                command = words[0].upper()
                self.heard.append(command)
                answer = ANSWERS.get(command, f"-ERR unknown command `{words[0]}`, with args beginning with: \r\n")
                writer.write(answer.encode())
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()
