"""Jobs that are claimed before there is a slot for them, where jobs are short: decision 15."""

from __future__ import annotations

import pytest

from rota.core.codec import FIRST_ATTEMPT
from rota.core.concurrency import MIN_AHEAD, ahead
from rota.store.reports import Claimed, Completed, Report, Returned
from rota.worker import wire
from rota.worker.flights import Flights
from rota.worker.pool import Pool, RunnerProcess
from rota.worker.tower import Tower
from tests.eventually import eventually
from tests.worker.crew import Crew


class Control:
    """A tower with two slots and one runner, of which only what it is told is of interest."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.flights = Flights()
        self.pool = Pool(
            "app", loops=1, measures_lag=False, max_jobs=None, max_rss_mb=None, on_messages=_ignore, on_death=_ignore,
            on_broken=_ignore,
        )  # fmt: skip
        self.runner = RunnerProcess("loop")
        self.runner.is_ready = True
        self.pool.runners.append(self.runner)
        self.tower = Tower(
            self.flights, self.pool, app="app", slots=lambda: 2, report=lambda _, report: self.reports.append(report),
            pass_on=_ignore,
        )  # fmt: skip
        self.tower.learn({"add": {"run_in": "thread"}}, {})

    def take(self, *runs: str) -> None:
        """A claim has brought these."""
        for run in runs:
            self.tower.take(Claimed("q", run, "1.a", FIRST_ATTEMPT, b"=x 1\n\nadd\n[1,2]"))

    @property
    def begun(self) -> list[str]:
        """The runs that the runner has been given, in order."""
        return [message.run for message in self.runner._outbox if isinstance(message, wire.Run)]

    def complete(self, run: str) -> None:
        """The runner says that it is done with one."""
        self.tower.hear(self.runner, [wire.Completed(self.flights.by_run["q", run].number, "1:1", b"")])


def _ignore(*_: object) -> None:
    """Of no interest."""


async def test_a_job_that_was_claimed_ahead_starts_when_a_slot_is_free_and_in_its_turn() -> None:
    control = Control()

    control.take("r1", "r2", "r3", "r4")
    assert (control.begun, control.flights.busy) == (["r1", "r2"], 2)

    control.complete("r2")
    assert (control.begun, control.flights.busy) == (["r1", "r2", "r3"], 2)
    assert control.flights.held() == {"q": [(run, "1.a") for run in ("r1", "r2", "r3", "r4")]}, "all have leases"


async def test_what_waits_for_a_slot_is_given_back_unstarted_and_the_rest_goes_on() -> None:
    control = Control()
    control.take("r1", "r2", "r3", "r4")

    control.tower.give_back()
    control.complete("r1")

    assert control.reports == [
        Returned("r3", "1.a", "unstarted"), Returned("r4", "1.a", "unstarted"), Completed("r1", "1.a", "1:1", b""),
    ]  # fmt: skip
    assert (control.begun, control.flights.busy) == (["r1", "r2"], 1)


async def test_what_waits_because_a_runner_is_renewed_is_not_given_back() -> None:
    control = Control()
    control.take("r1", "r2", "r3")
    control.pool.runners.append(RunnerProcess("loop"))
    claimed_at = control.flights.waiting[0].claimed_at

    control.tower.give_back_late()

    assert control.reports == []
    assert control.flights.waiting[0].claimed_at > claimed_at, "its time begins anew"


@pytest.mark.parametrize(("reason", "reports"), [("cancelled", [Returned("r3", "1.a", "started")]), ("lost", [])])
async def test_a_job_that_is_to_stop_while_it_waits_for_a_slot_never_starts(reason: str, reports: list[Report]) -> None:
    control = Control()
    control.take("r1", "r2", "r3")

    control.tower.stop_claim("q", "r3", "1.a", reason)
    control.complete("r1")

    assert control.reports[: len(reports)] == reports
    assert control.begun == ["r1", "r2"]
    assert not control.flights.waiting


async def test_a_run_that_comes_back_while_it_waits_for_a_slot_waits_once() -> None:
    control = Control()
    control.take("r1", "r2", "r3")

    control.tower.take(Claimed("q", "r3", "2.b", FIRST_ATTEMPT, b"=x 1\n\nadd\n[1,2]"))

    assert [flight.job.claim for flight in control.flights.waiting] == ["2.b"]
    assert control.reports == []


@pytest.mark.parametrize(
    ("landed", "elapsed_s", "cycle_s", "slots", "wanted"),
    [
        (0, 10.0, 0.002, 100, 0),
        (100, 10.0, 0.002, 100, 0),  # handlers of ten seconds
        (10, 0.001, 0.0015, 100, 30),  # of ten milliseconds
        (200, 0.005, 0.004, 1_000, 320),  # of none at all
        (200, 0.005, 0.004, 200, 200),
        (20, 0.001, 0.010, 1, MIN_AHEAD),
    ],
)
def test_as_many_are_claimed_ahead_as_will_land_meanwhile(
    landed: int, elapsed_s: float, cycle_s: float, slots: int, wanted: int
) -> None:
    assert ahead(landed, elapsed_s, cycle_s, slots) == wanted


async def test_jobs_claimed_ahead_of_long_ones_are_soon_anybodys_again(crew: Crew) -> None:
    """The worker goes by the short jobs that it has seen, and is wrong: nothing is stuck with it."""
    await crew.rota.queue().pause()
    await crew.start(concurrency=2)
    await crew.enqueue_many(crew.program.order.call("ran", str(number)) for number in range(200))
    long = await crew.enqueue_many(crew.program.wait.call(f"job-{number}") for number in range(30))

    await crew.rota.queue().resume()

    async def has_let_go() -> bool:
        counts = await crew.rota.queue().counts()
        return (counts["processing"], counts["pending"]) == (2, 28)

    await eventually(has_let_go, 15)
    for number in range(30):
        crew.allow(f"job-{number}")
    for job in long:
        await job.result(20)
    records = [await job.refresh() for job in long]
    assert {record.counts.failures + record.counts.stalls for record in records} == {0}
