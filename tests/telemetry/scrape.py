"""Reads what Prometheus would scrape."""

from __future__ import annotations

import re
from typing import Final

_LINE: Final = re.compile(r"(?P<name>[a-z_:]+)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Scrape:
    """The samples of one scrape, by name and labels."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        for line in text.splitlines():
            if not line.startswith("#"):
                found = _LINE.fullmatch(line)
                assert found is not None, f"{line!r} is not a sample"
                self.samples[found["name"], frozenset(_LABEL.findall(found["labels"] or ""))] = float(found["value"])

    def __call__(self, name: str, **labels: str) -> float:
        """The one sample of that name with exactly these labels."""
        return self.samples[name, frozenset(labels.items())]

    @property
    def names(self) -> set[str]:
        """Of all samples."""
        return {name for name, _ in self.samples}
