"""Debounce and throttle: how many jobs come of many calls with one key. Both build on ids and `on_same_id`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import quote

from rota.core.ids import checked_id
from rota.core.retry import Seconds, to_ms
from rota.core.same_id_policy import Ignore, Update
from rota.errors import InvalidOption

#: An idempotency token is kept for a day: the longest period that a throttle can remember.
MAX_PERIOD_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class Debounce:
    """`debounce=Debounce("page-7", wait=5, max_wait=60)`: one job, `wait` seconds after the last of several calls.

    It has the data of the last call. It starts at most `max_wait` seconds after the first one, however often calls
    come; without `max_wait` it may be postponed without end.
    """

    key: str
    wait: Seconds
    max_wait: Seconds | None = None

    def __post_init__(self) -> None:
        checked_id(self.key)
        if not self.wait_ms > 0:
            raise InvalidOption("debounce", f"wait must be positive, not {self.wait!r}")
        if self.max_wait is not None and to_ms(self.max_wait, "debounce") < self.wait_ms:
            raise InvalidOption("debounce", f"max_wait {self.max_wait!r} is shorter than wait {self.wait!r}")

    @property
    def wait_ms(self) -> int:
        """The delay of each call."""
        return to_ms(self.wait, "debounce")

    @property
    def on_same_id(self) -> Update:
        """Postpones a waiting run and replaces its data."""
        return Update(run_at="if_later", max_wait=self.max_wait)


@dataclass(frozen=True, slots=True)
class Throttle:
    """`throttle=Throttle("page-7", period=60)`: at most one job per `period` seconds for a key.

    `edge="leading"`: the first call makes the job, and others within the period return it unchanged. `"trailing"`: the
    job starts a period after the first call, with the data of the last one.
    """

    key: str
    period: Seconds
    edge: Literal["leading", "trailing"] = "leading"

    def __post_init__(self) -> None:
        checked_id(self.key)
        if not 0 < self.period_ms <= MAX_PERIOD_MS:
            raise InvalidOption("throttle", f"period must be positive and at most a day, not {self.period!r}")
        if self.edge not in ("leading", "trailing"):
            raise InvalidOption("throttle", f"edge is 'leading' or 'trailing', not {self.edge!r}")

    @property
    def period_ms(self) -> int:
        """The period."""
        return to_ms(self.period, "throttle")

    @property
    def delay_ms(self) -> int:
        """The delay of each call."""
        return self.period_ms if self.edge == "trailing" else 0

    @property
    def on_same_id(self) -> Update | Ignore:
        """Leaves a waiting run when it is, or as it is."""
        return Update(run_at=False) if self.edge == "trailing" else Ignore()

    def token_of(self, task: str) -> str:
        """The idempotency token of a task's period, with its length. No token of a user has a `~`."""
        return f"{self.period_ms}~{quote(task)}~{self.key}" if self.edge == "leading" else ""
