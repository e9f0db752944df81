"""Metrics in the Prometheus text format: metric families, their samples, and the text of a scrape."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
#: Histogram bounds for the seconds that jobs wait and run.
SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)

Kind = Literal["counter", "gauge", "histogram"]
_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class Sample(NamedTuple):
    """One line: labels and a value. Histogram lines have a `suffix`: _bucket, _sum, _count."""

    labels: Mapping[str, str]
    value: float
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """All samples of one metric."""

    name: str
    kind: Kind
    help: str
    samples: list[Sample] = field(default_factory=list[Sample])

    def add(self, value: float, **labels: str) -> None:
        """Adds a sample."""
        self.samples.append(Sample(labels, value))


class Histogram:
    """A histogram for each set of labels."""

    def __init__(self, name: str, help: str, bounds: Sequence[float] = SECONDS) -> None:
        self._name = name
        self._help = help
        self._bounds = tuple(bounds)
        self._counts: dict[tuple[tuple[str, str], ...], list[int]] = {}
        self._sums: dict[tuple[tuple[str, str], ...], float] = {}

    def observe(self, value: float, **labels: str) -> None:
        """Counts one value."""
        key = tuple(labels.items())
        if key not in self._counts:
            self._counts[key] = [0] * (len(self._bounds) + 1)
            self._sums[key] = 0.0
        self._counts[key][bisect_left(self._bounds, value)] += 1
        self._sums[key] += value

    def family(self) -> Family:
        """Returns the current samples."""
        found = Family(self._name, "histogram", self._help)
        for key, counts in self._counts.items():
            found.samples.extend(histogram_samples(dict(key), self._bounds, counts, self._sums[key]))
        return found


def histogram_samples(
    labels: Mapping[str, str], bounds: Sequence[float], counts: Sequence[int], total: float
) -> list[Sample]:
    """Returns the lines of one histogram. `counts` has a value per bucket, and one for values above the last bound."""
    samples: list[Sample] = []
    below = 0
    for bound, count in zip((*map(_number, bounds), "+Inf"), counts, strict=True):
        below += count
        samples.append(Sample({**labels, "le": bound}, below, "_bucket"))
    samples.append(Sample(labels, total, "_sum"))
    samples.append(Sample(labels, below, "_count"))
    return samples


def render(families: Iterable[Family]) -> str:
    """Returns the text of a scrape. Families without samples are left out."""
    lines: list[str] = []
    for found in families:
        if not found.samples:
            continue
        lines.append(f"# HELP {found.name} {_escaped(found.help, quotes=False)}")
        lines.append(f"# TYPE {found.name} {found.kind}")
        for sample in found.samples:
            labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels.items())
            lines.append(f"{found.name}{sample.suffix}{f'{{{labels}}}' if labels else ''} {_number(sample.value)}")
    return "\n".join([*lines, ""])


def _escaped(text: str, *, quotes: bool = True) -> str:
    escaped = text.translate(_ESCAPES)
    return escaped if quotes else escaped.replace(r"\"", '"')


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))
