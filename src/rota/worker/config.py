"""The configuration of a worker, for the CLI and for code. Validated when it is created."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from rota.core.ids import checked_queue
from rota.errors import InvalidOption
from rota.store.keys import failures_of

MAX_CONCURRENCY: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """The options of `rota worker`."""

    app: str
    queues: tuple[str, ...] = ("default",)
    #: The weight of each queue; empty means strictly in the order of `queues`.
    weights: tuple[int, ...] = ()
    concurrency: int | Literal["auto"] = 10
    processes: int = 1
    #: How long handlers may run on after the first signal; None: as the settings of the namespace say.
    grace: float | None = None
    burst: bool = False
    max_jobs: int | None = None
    max_rss_mb: int | None = None
    name: str | None = None
    #: The log format of the runners, text or json, and the lowest level; None leaves logging to the program.
    log_format: str | None = None
    log_level: str = "info"
    #: Which failures are logged with their traceback: the last one of each job, or all.
    log_tracebacks: Literal["last", "all"] = "last"
    #: The port of /metrics, /healthz and /readyz; None for none. With 0 the system chooses one.
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"

    def __post_init__(self) -> None:
        for queue in self.queues:
            checked_queue(queue)
        if not self.queues or len(set(self.queues)) != len(self.queues):
            raise InvalidOption("queues", f"{self.queues!r} names no queue, or one of them twice")
        if self.weights and (len(self.weights) != len(self.queues) or min(self.weights) < 1):
            raise InvalidOption("queues", "every queue needs a weight of at least 1, or none has one")
        if self.concurrency != "auto" and not 1 <= self.concurrency <= MAX_CONCURRENCY:
            raise InvalidOption("concurrency", f"{self.concurrency!r} is not 1 to {MAX_CONCURRENCY:,}, nor auto")
        if not 1 <= self.processes <= 1024:
            raise InvalidOption("processes", f"{self.processes!r} is not 1 to 1,024")
        if self.log_format not in (None, "text", "json"):
            raise InvalidOption("log_format", f"{self.log_format!r} is neither text nor json")
        if self.log_tracebacks not in ("last", "all"):
            raise InvalidOption("log_tracebacks", f"{self.log_tracebacks!r} is neither last nor all")
        if self.metrics_port is not None and not 0 <= self.metrics_port <= 65_535:
            raise InvalidOption("metrics_port", f"{self.metrics_port!r} is not 0 to 65,535")
        if self.grace is not None and self.grace < 0:
            raise InvalidOption("grace", f"{self.grace!r} is negative")
        for option, value in (("max_jobs", self.max_jobs), ("max_rss_mb", self.max_rss_mb)):
            if value is not None and value < 1:
                raise InvalidOption(option, f"{value!r} is not at least 1")

    @property
    def served(self) -> tuple[str, ...]:
        """The queues it serves, in order: each of `queues`, followed by its failure queue unless that is listed."""
        served: list[str] = []
        for queue in self.queues:
            served.append(queue)
            if failures_of(queue) not in self.queues:
                served.append(failures_of(queue))
        return tuple(served)

    def spread(self, shards: Mapping[str, Sequence[str]]) -> WorkerConfig:
        """The same with the shards of each queue in its place; they share its weight."""
        if all(list(names) == [queue] for queue, names in shards.items()):
            return self
        whole = math.lcm(*(len(names) for names in shards.values()))
        weights = self.weights or (1,) * len(self.queues)
        found: dict[str, int] = {}
        for queue, weight in zip(self.queues, weights, strict=True):
            for name in shards[queue]:
                found.setdefault(name, weight * whole // len(shards[queue]))
        return replace(self, queues=tuple(found), weights=tuple(found.values()) if self.weights else ())

    @property
    def first_concurrency(self) -> int:
        """Slots at the start: the configured number, or a modest one that `auto` grows from."""
        return max(4, 2 * (os.cpu_count() or 1)) if self.concurrency == "auto" else self.concurrency


def parse_queues(text: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """`a,b` (strictly in that order) or `a=3,b=1` (by weight), as given to `--queues`."""
    names: list[str] = []
    weights: list[int] = []
    for part in text.split(","):
        name, equals, weight = part.strip().partition("=")
        names.append(checked_queue(name))
        if equals:
            if not weight.isdigit() or int(weight) < 1:
                raise InvalidOption("queues", f"{part!r}: a weight is a whole number of at least 1")
            weights.append(int(weight))
    if weights and len(weights) != len(names):
        raise InvalidOption("queues", f"{text!r}: every queue needs a weight, or none has one")
    return tuple(names), tuple(weights)
