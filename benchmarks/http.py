"""`python -m benchmarks.http`: what a POST /api/jobs costs, and what uvicorn and FastAPI alone take for the same body.

Both are served in turns by a process of their own, by the same client, in the same run: compare the ratio, and the CPU
time of the serving process. Its reciprocal is what one core would do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import uvicorn
from fastapi import FastAPI, Response

from benchmarks.machine import CLIENT_CORES, SERVER_CORES, fine_cpu_of, pinned
from rota import Rota
from rota.server import create_app
from rota.server.request_context_and_permissions import json_response
from rota.server.schemas.jobs import NewJob, NewJobResponse
from tests.servers import new_server

CONNECTIONS: Final = 32
ROUNDS: Final = 5
BODY: Final = {"type": "resize", "data": {"image": "s3://pictures/7.png", "width": 640, "height": 480}}


class Round(NamedTuple):
    """What one server did in one round."""

    rate: float
    cpu_us: float


# --- what is served ----------------------------------------------------------------------------------------------


def bare_app() -> Any:
    """FastAPI with the same body, the same answer and the same check of who asks, and nothing behind it."""
    app = FastAPI()
    # As large as the real one's.
    answer: dict[str, Any] = {
        "message": "Job enqueued",
        "jobId": "default:000000001-hxsptrzh",
        "is_new": True,
        "job": {"data": json.dumps(BODY["data"]), "padding": "x" * 600},
    }

    @app.post("/api/jobs", status_code=201, response_model=NewJobResponse)
    async def enqueue_job(body: NewJob) -> Response:
        return json_response({**answer, "type": body.type}, 201)

    return app


def serve(kind: str, url: str) -> None:
    """Serves on a free port, and says which on the first line."""
    app = bare_app() if kind == "bare" else create_app(Rota(url), auth="none")
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:
        print(listening.getsockname()[1], flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listening])


@contextmanager
def server(kind: str, url: str) -> Generator[tuple[int, int]]:
    """Its process and its port."""
    command = [sys.executable, "-m", "benchmarks.http", "--serve", kind, "--url", url]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, preexec_fn=pinned(SERVER_CORES), env=os.environ
    )
    try:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(10)


# --- who asks ----------------------------------------------------------------------------------------------------


async def load(port: int, seconds: float) -> int:
    """Posts over some connections for as long as given; how many were answered with 201."""
    content = json.dumps(BODY).encode()
    request = (
        b"POST /api/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(content), content)
    )
    until = time.perf_counter() + seconds

    async def post() -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        done = 0
        while time.perf_counter() < until:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 201"):
                raise RuntimeError(head.decode(errors="replace"))
            length = head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]
            await reader.readexactly(int(length))
            done += 1
        writer.close()
        return done

    return sum(await asyncio.gather(*(post() for _ in range(CONNECTIONS))))


def measure(pid: int, port: int, seconds: float) -> Round:
    """One round against one server."""
    cpu, began = fine_cpu_of([pid]), time.perf_counter()
    done = asyncio.run(load(port, seconds))
    took, used = time.perf_counter() - began, fine_cpu_of([pid]) - cpu
    return Round(done / took, used / done * 1e6)


def main() -> None:
    """Prints both, and how they compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each round")
    parser.add_argument("--url", default="", help="the store; else an embedded one")
    parser.add_argument("--serve", choices=["bare", "rota"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.url)
        return
    pinned(CLIENT_CORES)()
    with new_server("valkey") as store:
        url = options.url or store.url
        with server("bare", url) as bare, server("rota", url) as rota:
            for one in (bare, rota):
                asyncio.run(load(one[1], 1.0))  # imports, connections, scripts
            rounds = [(measure(*bare, options.seconds), measure(*rota, options.seconds)) for _ in range(ROUNDS)]
    names = ("FastAPI alone", "Rota")
    for place, name in enumerate(names):
        rate = statistics.median(one[place].rate for one in rounds)
        cpu = statistics.median(one[place].cpu_us for one in rounds)
        print(f"{name:14} {rate:8,.0f} POST/s   {cpu:6.0f} µs CPU each   {1e6 / cpu:8,.0f} per second and core")
    ratio = statistics.median(one[0].cpu_us / one[1].cpu_us for one in rounds)
    print(f"Rota reaches {ratio:.0%} of what FastAPI alone does on the same core")


if __name__ == "__main__":
    main()
