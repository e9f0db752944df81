"""Runs `rota keda-scaler` as a process, and calls it as KEDA does."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from rota.autoscaler.keda import messages
from tests.eventually import eventually
from tests.worker.harness import ROOT

CALL_S = 30.0


class ScalerProcess:
    """One `rota keda-scaler`."""

    def __init__(self, url: str, namespace: str, log: Path, *options: str) -> None:
        words = ["keda-scaler", "--url", url, "--namespace", namespace, "--listen", "127.0.0.1:0", *options]
        self.log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "rota.cli.main", *words],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    async def address(self) -> str:
        """Where it listens, as soon as it does."""

        def listening() -> re.Match[str] | None:
            assert self.process.poll() is None, self.log.read_text()
            return re.search(r"listening on (\S+:\d+)", self.log.read_text())

        found = await eventually(listening, 60)
        assert found is not None
        return found[1]

    def kill(self) -> None:
        """Ends it, however it is."""
        self.process.kill()
        self.process.wait()


class KedaClient:
    """The calls of KEDA for one trigger."""

    def __init__(self, address: str, credentials: Any = None) -> None:
        open_secure, open_plain = grpc.aio.secure_channel, grpc.aio.insecure_channel
        self.channel: Any = open_plain(address) if credentials is None else open_secure(address, credentials)

    def raw(self, method: str) -> Any:
        """A method that takes and returns bytes."""
        return self.channel.unary_unary(f"/externalscaler.ExternalScaler/{method}")

    async def is_active(self, **metadata: str) -> bool:
        """IsActive."""
        answer = await self._unary("IsActive", messages.IsActiveResponse)(_ref(metadata), timeout=CALL_S)
        return bool(answer.result)

    async def metric_spec(self, **metadata: str) -> list[tuple[str, int, float]]:
        """GetMetricSpec: name and target of each metric."""
        answer = await self._unary("GetMetricSpec", messages.GetMetricSpecResponse)(_ref(metadata), timeout=CALL_S)
        return [(one.metricName, one.targetSize, one.targetSizeFloat) for one in answer.metricSpecs]

    async def needed(self, **metadata: str) -> int:
        """GetMetrics: the number of workers."""
        request = messages.GetMetricsRequest(scaledObjectRef=_ref(metadata), metricName="rota-workers-needed")
        answer = await self._unary("GetMetrics", messages.GetMetricsResponse)(request, timeout=CALL_S)
        (value,) = answer.metricValues
        assert value.metricValue == value.metricValueFloat
        return int(value.metricValue)

    def stream(self, **metadata: str) -> Any:
        """StreamIsActive: `read()` returns the next message."""
        method = self.channel.unary_stream(
            "/externalscaler.ExternalScaler/StreamIsActive",
            request_serializer=messages.ScaledObjectRef.SerializeToString,
            response_deserializer=messages.IsActiveResponse.FromString,
        )
        return method(_ref(metadata))

    async def first_answer(self, **metadata: str) -> Any:
        """The first message of a new stream."""
        return await self.stream(**metadata).read()

    def _unary(self, name: str, answer: Any) -> Any:
        return self.channel.unary_unary(
            f"/externalscaler.ExternalScaler/{name}",
            request_serializer=_encode,
            response_deserializer=answer.FromString,
        )


def _encode(message: Any) -> bytes:
    return message.SerializeToString()


def _ref(metadata: Mapping[str, str]) -> Any:
    """With the keys that KEDA itself adds."""
    given = {"scalerAddress": "rota-keda:6000", **metadata}
    return messages.ScaledObjectRef(name="worker", namespace="rota", scalerMetadata=given)
