"""Running jobs. `run_worker(WorkerConfig(app="tasks:rota"))` is what `rota worker tasks:rota` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rota.worker.config import WorkerConfig
    from rota.worker.worker import run_worker

__all__ = ["WorkerConfig", "run_worker"]

if not TYPE_CHECKING:  # a type checker would take every name for one that exists

    def __getattr__(name: str) -> Any:
        # Imported when asked for: a runner is of this package, too, and needs neither.
        if name == "WorkerConfig":
            from rota.worker.config import WorkerConfig

            return WorkerConfig
        if name == "run_worker":
            from rota.worker.worker import run_worker

            return run_worker
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
