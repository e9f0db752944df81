"""KEDA's gRPC service `externalscaler.ExternalScaler`: what it asks of an external scaler, and the status of errors."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, Final, NoReturn

import grpc

from rota.autoscaler.keda import messages
from rota.autoscaler.keda.activity_stream import ActivityStream
from rota.autoscaler.keda.trigger_metadata import Trigger, read_metadata
from rota.autoscaler.keda.workers_needed import workers_needed
from rota.client.rota import Rota
from rota.client.session import Session, checked_session
from rota.errors import InvalidOption, RotaError, StoreError

#: The metric is the number of workers needed; with a target of one per worker, Kubernetes starts as many.
METRIC: Final = "rota-workers-needed"
TARGET: Final = 1


class ExternalScaler:
    """Answers KEDA for the queues of one namespace."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota
        self._streams: set[ActivityStream] = set()

    def stop_streams(self) -> None:
        """Ends open streams without an error: KEDA then opens them again after 2 s, from another replica if any."""
        for stream in self._streams:
            stream.stop()

    async def is_active(self, request: Any, context: Any) -> Any:
        """True if the queues need a worker. KEDA calls it every `pollingInterval`."""
        needed = await self._needed(request, context)
        return messages.IsActiveResponse(result=needed > 0)

    async def stream_is_active(self, request: Any, context: Any) -> AsyncIterator[Any]:
        """The same, pushed when it changes."""
        trigger = await _trigger(request, context)
        try:
            stream = ActivityStream(await self._session(), trigger)
            self._streams.add(stream)
            try:
                async with aclosing(stream.answers()) as answers:
                    async for is_active in answers:
                        yield messages.IsActiveResponse(result=is_active)
            finally:
                self._streams.discard(stream)
        except RotaError as error:
            await _abort(context, error)

    async def get_metric_spec(self, request: Any, context: Any) -> Any:
        """The metric, and its target per worker."""
        await _trigger(request, context)
        return messages.GetMetricSpecResponse(
            metricSpecs=[{"metricName": METRIC, "targetSize": TARGET, "targetSizeFloat": TARGET}]
        )

    async def get_metrics(self, request: Any, context: Any) -> Any:
        """The number of workers needed."""
        needed = await self._needed(request.scaledObjectRef, context)
        return messages.GetMetricsResponse(
            metricValues=[{"metricName": METRIC, "metricValue": needed, "metricValueFloat": needed}]
        )

    def handler(self) -> Any:
        """The handler of all methods, for a gRPC server."""
        ref, untyped = messages.ScaledObjectRef, _grpc
        unary, stream = untyped.unary_unary_rpc_method_handler, untyped.unary_stream_rpc_method_handler
        active, spec, metrics = messages.IsActiveResponse, messages.GetMetricSpecResponse, messages.GetMetricsResponse
        methods = {
            "IsActive": unary(self.is_active, ref.FromString, active.SerializeToString),
            "StreamIsActive": stream(self.stream_is_active, ref.FromString, active.SerializeToString),
            "GetMetricSpec": unary(self.get_metric_spec, ref.FromString, spec.SerializeToString),
            "GetMetrics": unary(self.get_metrics, messages.GetMetricsRequest.FromString, metrics.SerializeToString),
        }
        return untyped.method_handlers_generic_handler(messages.SERVICE, methods)

    async def _session(self) -> Session:
        return await checked_session(self._rota)

    async def _needed(self, ref: Any, context: Any) -> int:
        trigger = await _trigger(ref, context)
        try:
            return (await workers_needed(await self._session(), trigger)).needed
        except RotaError as error:
            await _abort(context, error)


_grpc: Any = grpc


async def _trigger(ref: Any, context: Any) -> Trigger:
    try:
        return read_metadata(dict(ref.scalerMetadata))
    except InvalidOption as error:
        await context.abort(_grpc.StatusCode.INVALID_ARGUMENT, f"metadata of ScaledObject {ref.name}: {error}")
        raise


async def _abort(context: Any, error: RotaError) -> NoReturn:
    """Ends the call with a status that KEDA takes for missing data: it then leaves the number of workers as it is."""
    is_away = isinstance(error, StoreError)
    code = _grpc.StatusCode.UNAVAILABLE if is_away else _grpc.StatusCode.FAILED_PRECONDITION
    await context.abort(code, str(error))
    raise error
