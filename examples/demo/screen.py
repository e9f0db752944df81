"""The screen of the demo: redrawn in place in a terminal with rich installed, plain lines otherwise.

Everything shown comes from the public API: `queues()`, `jobs("processing")`, `events()`, `workers()` and `scaling`.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from examples.demo.kinds import Outcome, Show
from examples.demo.pool import Pool, pid_of
from examples.demo.stage import SLOTS
from examples.demo.tasks import QUEUES, rota
from rota import Event, JobRecord, JobState, QueueInfo

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

REFRESH_S: Final = 0.2
KEPT: Final = 100
TITLE: Final = "Rota demo"

#: Verb of an event -> text and colour. Other verbs are not shown.
VERBS: Final = {
    "promote": ("is due", "magenta"),
    "completed": ("completed", "green"),
    "fail": ("failed, will be retried", "yellow"),
    "failed": ("failed for good", "red"),
    "cancelled": ("was cancelled", "dim"),
    "snooze": ("snoozed", "magenta"),
    "reap": ("lost its worker, is pending again", "yellow"),
    "redrive": ("was redriven", "blue"),
}
TONES: Final = {
    "pending": "blue",
    "scheduled": "magenta",
    "blocked": "yellow",
    "processing": "cyan",
    "completed": "green",
    "failed": "red",
    "cancelled": "dim",
}
#: Tasks whose completions are too frequent to be listed.
FREQUENT: Final = frozenset({"chore", "greet", "thumbnail", "download"})


@dataclass(slots=True)
class Message:
    """One line of the log."""

    at: float
    text: str
    style: str


@dataclass(slots=True)
class Scene:
    """The data of the screen."""

    show: Show
    is_endless: bool
    started_at: float = field(default_factory=time.monotonic)
    pool: Pool = field(default_factory=Pool)
    #: What the autoscaler has not done as expected.
    pool_error: str = ""
    queues: list[QueueInfo] = field(default_factory=list[QueueInfo])
    running: list[JobRecord] = field(default_factory=list[JobRecord])
    log: deque[Message] = field(default_factory=lambda: deque[Message](maxlen=KEPT))
    counts: Counter[str] = field(default_factory=Counter[str])
    outcomes: list[Outcome] = field(default_factory=list[Outcome])

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started_at

    async def add_event(self, event: Event) -> None:
        """Counts an event, and logs it if its verb is shown."""
        self.counts[event.verb] += len(event.runs)
        if event.verb not in VERBS:
            return
        at, (text, style) = self.elapsed, VERBS[event.verb]
        for run in event.runs:
            name = self.show.name_of(event.queue, run) or "a job"
            if name not in FREQUENT or event.verb != "completed":
                self.log.append(Message(at, f"{name} {text}{await self._why(event, run)}", style))

    async def _why(self, event: Event, run: str) -> str:
        """Returns the error or reason from the record; events do not carry it."""
        if event.verb not in ("fail", "failed", "cancelled") or (event.queue, run) not in self.show.jobs:
            return ""
        record = await self.show.jobs[event.queue, run][0].refresh()
        why = record.reason if record.error is None else f"{record.error.type}: {record.error.message}"
        return f" ({why})" if why else ""

    def collect_messages(self) -> None:
        """Moves the demo's own messages into the log, before the events that they caused."""
        messages = [Message(at - self.started_at, text, "bold") for at, text in self.show.messages]
        self.show.messages.clear()
        if messages:
            self.log = deque(sorted([*self.log, *messages], key=lambda message: message.at), maxlen=KEPT)

    def totals(self) -> dict[str, int]:
        """Returns the counters of all queues."""
        totals = Counter[str]()
        for queue in self.queues:
            totals.update(queue.totals)
        return {
            "jobs": totals["run"],
            "completed": totals["completed"],
            "failed": totals["failed"],
            "cancelled": totals["cancelled"],
            "retries": self.counts["fail"],
            "stalls": self.counts["reap"],
        }

    def footer(self) -> str:
        """Returns the counters in one line."""
        return " · ".join(f"{name} {count:,}" for name, count in self.totals().items())

    def verdict(self) -> str:
        """Returns how many jobs ended as expected."""
        return f"{sum(outcome.is_ok for outcome in self.outcomes)} of {len(self.outcomes)} ended as expected"


class Screen(Protocol):
    """Shows a scene."""

    def draw(self, scene: Scene) -> None:
        """Shows the current state."""
        ...

    def close(self) -> None:
        """Restores the terminal."""
        ...


async def keep_showing(scene: Scene, screen: Screen) -> None:
    """Reads queues, jobs and events, and draws them, until cancelled."""
    listening = asyncio.create_task(_listen(scene))
    try:
        while True:
            scene.queues = [info for info in await rota.queues() if info.name in QUEUES]
            scene.running = (await rota.jobs(JobState.PROCESSING, limit=50)).jobs
            for message in await scene.pool.refresh():
                scene.show.say(message)
            scene.collect_messages()
            screen.draw(scene)
            await asyncio.sleep(REFRESH_S)
    finally:
        listening.cancel()
        with suppress(asyncio.CancelledError):
            await listening
        scene.collect_messages()
        screen.draw(scene)
        screen.close()


async def _listen(scene: Scene) -> None:
    async for event in rota.events(queues=QUEUES):
        await scene.add_event(event)


def open_screen() -> Screen:
    """Returns the best screen for this terminal."""
    if sys.stdout.isatty():
        with suppress(ImportError):
            return Picture()
    return Lines()


class Lines:
    """Prints a line for each message, and the counters every five seconds."""

    def __init__(self) -> None:
        self._shown_until = -1.0
        self._counted_at = 0.0

    def draw(self, scene: Scene) -> None:
        """Prints new messages."""
        for message in [message for message in scene.log if message.at > self._shown_until]:
            print(f"{message.at:6.1f} s  {message.text}")
            self._shown_until = message.at
        if scene.elapsed - self._counted_at >= 5:
            self._counted_at = scene.elapsed
            print(f"{scene.elapsed:6.1f} s  -- {scene.footer()}; {scene.verdict()}")
        sys.stdout.flush()

    def close(self) -> None:
        """Does nothing: there is nothing to restore."""


class Picture:
    """Queues, running jobs with progress bars, log and counters, redrawn in place."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console: Console = Console()
        self._live: Live = Live(console=self._console, screen=True, auto_refresh=False)
        self._live.start()

    def draw(self, scene: Scene) -> None:
        """Draws as much as fits into the terminal."""
        self._live.update(self._picture(scene), refresh=True)

    def close(self) -> None:
        """Leaves the alternate screen."""
        self._live.stop()

    def _picture(self, scene: Scene) -> RenderableType:
        from rich.layout import Layout
        from rich.panel import Panel
        from rich.text import Text

        height = self._console.size.height
        queues = len(QUEUES) + 3
        rest = height - queues - 3
        running = max(5, rest // 2)
        layout = Layout()
        layout.split_column(
            Layout(self._head(scene), size=2),
            Layout(_panel("queues", _queue_table(scene)), size=queues),
            Layout(_panel("running", _running_table(scene, running - 2, self._console.size.width)), size=running),
            Layout(_panel("log", _log_text(scene, rest - running - 2))),
            Layout(Text(scene.footer(), style="bold", no_wrap=True, overflow="ellipsis"), size=1),
        )
        return layout if height >= 20 else Panel("this terminal is too small: the demo needs 20 lines")

    def _head(self, scene: Scene) -> Text:
        from rich.text import Text

        minutes, seconds = divmod(int(scene.elapsed), 60)
        head = Text(no_wrap=True, overflow="ellipsis")
        head.append(f" {TITLE} ", style="bold reverse")
        head.append(f"  {minutes}:{seconds:02}  ")
        head.append(scene.verdict(), style="green" if all(o.is_ok for o in scene.outcomes) else "bold red")
        head.append("  Ctrl-C to stop" if scene.is_endless else "  one round", style="dim")
        head.append(f"\n {'workers':<9}", style="dim")
        for worker in scene.pool.alive:
            # A job that waits in its worker for a slot is in the state processing, too.
            busy = min(SLOTS, sum(record.worker == worker.id for record in scene.running))
            is_active = worker.info.get("state") not in ("draining", "drained")
            head.append("● ", style="green" if is_active else "yellow")
            head.append(f"{pid_of(worker.id)} {busy}/{SLOTS} busy{'' if is_active else ', draining'}    ")
        return head


def _panel(title: str, content: RenderableType) -> RenderableType:
    from rich.panel import Panel

    return Panel(content, title=title, title_align="left", border_style="dim", padding=(0, 1))


def _queue_table(scene: Scene) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, expand=True, pad_edge=False, padding=(0, 1), collapse_padding=True)
    table.add_column("queue", style="bold", header_style="dim")
    for state in TONES:
        table.add_column(state, justify="right", header_style="dim")
    for info in scene.queues:
        cells = [(info.counts[state], tone) for state, tone in TONES.items()]
        table.add_row(info.name, *(Text(f"{count:,}", style=tone if count else "dim") for count, tone in cells))
    return table


def _running_table(scene: Scene, rows: int, width: int) -> Table:
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, expand=True, pad_edge=False, padding=(0, 1), show_header=False)
    bar = max(10, width // 4 - 2)
    for column in ({"width": 14}, {"width": 6}, {"width": bar}, {"width": 5}, {"ratio": 1}):
        table.add_column(no_wrap=True, overflow="ellipsis", **column)  # type: ignore[arg-type]
    # Jobs with progress come first; those that do not fit are counted.
    records = sorted(scene.running, key=lambda record: (record.progress is None, record.ref.run or ""))
    shown = records if len(records) <= rows else records[: rows - 1]
    for record in shown:
        name = scene.show.name_of(record.ref.queue, record.ref.run) or record.task
        progress = record.progress
        table.add_row(
            Text(name, style="cyan"),
            Text(str(pid_of(record.worker)), style="dim"),
            ProgressBar(total=100, completed=progress.percent, width=bar) if progress else "",
            f"{progress.percent:3} %" if progress else "",
            Text(_remark(record), style="dim"),
        )
    if len(shown) < len(records):
        table.add_row(Text(f"and {len(records) - len(shown)} more", style="dim"), "", "", "", "")
    return table


def _remark(record: JobRecord) -> str:
    progress = record.progress
    if progress is None:
        return f"attempt {record.counts.attempt}"
    left = progress.seconds_left
    return progress.note + (f", {left:.0f} s left" if left is not None and record.task != "endless" else "")


def _log_text(scene: Scene, rows: int) -> Text:
    from rich.text import Text

    text = Text(no_wrap=True, overflow="ellipsis")
    for message in list(scene.log)[-max(1, rows) :]:
        text.append(f"{message.at:6.1f} s  ", style="dim")
        text.append(f"{message.text}\n", style=message.style)
    return text


def print_summary(outcomes: list[Outcome]) -> None:
    """Prints a table: kind, expected and actual end, and whether they agree."""
    rows = [(o.kind.name, o.kind.expected, o.actual, "ok" if o.is_ok else "NOT OK") for o in outcomes]
    if sys.stdout.isatty():
        with suppress(ImportError):
            _print_rich(rows)
            return
    widths = [max(len(row[column]) for row in (*rows, HEADS)) for column in range(len(HEADS))]
    for row in (HEADS, *rows):
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


HEADS: Final = ("kind of job", "expected end", "actual end", "ok")


def _print_rich(rows: list[tuple[str, str, str, str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for head in HEADS:
        table.add_column(head)
    for kind, expected, actual, verdict in rows:
        table.add_row(kind, expected, actual, Text(verdict, style="green" if verdict == "ok" else "bold red"))
    Console().print(table)
