"""OpenTelemetry (extra `otel`): one trace from the call that enqueued a job to its last attempt, and metrics of both.

`Rota(middleware=[OpenTelemetry()])` traces what a program enqueues and runs, with the providers that the program has
set up. `start()` sets up OpenTelemetry's own SDK as the environment says (extra `otlp`); a worker does so by itself
where the environment names a collector. `opentelemetry-instrument` finds `RotaInstrumentor`.
"""

from __future__ import annotations

from rota.otel.middleware import OpenTelemetry, RotaInstrumentor
from rota.otel.setup import equip, start

__all__ = ["OpenTelemetry", "RotaInstrumentor", "equip", "start"]
