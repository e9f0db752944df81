"""Workers. `run_worker(WorkerConfig(app="tasks:rota"))` is what `rota worker tasks:rota` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rota.worker.config import WorkerConfig
    from rota.worker.worker_lifecycle import run_worker

__all__ = ["WorkerConfig", "run_worker"]

if not TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name: str) -> Any:
        # Imported on first use: runners import this package, too, and need neither.
        if name == "WorkerConfig":
            from rota.worker.config import WorkerConfig

            return WorkerConfig
        if name == "run_worker":
            from rota.worker.worker_lifecycle import run_worker

            return run_worker
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
