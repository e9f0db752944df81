"""OpenTelemetry (extra `otel`): one trace from the enqueue of a job to its last attempt, and metrics of both.

`Rota(middleware=[OpenTelemetry()])` traces what a program enqueues and runs, with the providers that the program has
set up. `start()` sets up OpenTelemetry's SDK from environment variables (extra `otlp`); a worker calls it if they name
a collector. `opentelemetry-instrument` finds `RotaInstrumentor`.
"""

from __future__ import annotations

from rota.install_command import install_command

try:
    from rota.otel.job_middleware import OpenTelemetry, RotaInstrumentor
    from rota.otel.sdk_setup import instrument, start
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"rota.otel requires {error.name}: {install_command('otel')}", name=error.name) from error

__all__ = ["OpenTelemetry", "RotaInstrumentor", "instrument", "start"]
