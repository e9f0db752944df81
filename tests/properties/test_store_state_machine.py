"""The store compared with a dictionary, whatever clients, workers and time do, and however often a call is sent."""

from __future__ import annotations

import random
import secrets
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from rota.core.ids import JobRef, encode_run
from rota.core.job_options import Keep
from rota.core.metric_series import COUNTS, MINUTE_MS, Counts
from rota.core.state_transitions import JobState
from rota.store.claim_replies import ClaimedJob
from rota.store.enqueue_batcher import NewJob
from rota.store.read_metric_counters import CounterStore
from rota.store.report_encoding import CancelConfirmed, Completed, Failed, Lost, Report, Returned, Snoozed
from rota.store.report_encoding import Cancelled as GivenUp
from tests.properties.state_machine import EPOCH_MS, Bench, Chance, Machine, Steps, choose, rarely, run_examples, walk
from tests.properties.store_model import LEASE_MS, Model, Run
from tests.scale import IS_LONG
from tests.store.driver import QUEUE, STATES, new_job

WORKERS: Final = ("w1", "w2")
IDS: Final = ("", "a", "a", "b")
PRIORITIES: Final = (-10, 0, 0, 0, 10)
#: None: there is no next time.
DELAYS: Final = (None, 0, 0, 1, 1_000, 5_000)
OPERATIONS: Final = ("open", "open", "paused", "purge", "leave", "sweep")
VERBS: Final = ("complete", "fail", "fail", "snooze", "return", "give up", "confirm cancel", "lose")

workers = st.sampled_from(WORKERS)
delays = st.sampled_from(DELAYS)
new_runs = st.tuples(
    st.sampled_from(IDS),
    st.sampled_from(PRIORITIES),
    delays.map(lambda delay: delay or 0),
    st.none() | st.none() | st.sampled_from([1, 2_000, 6_000]),
    st.fixed_dictionaries(
        {},
        optional={
            "max_stalls": st.integers(0, 1),
            "at_most_once": st.booleans(),
            "keeps_nothing": st.booleans(),
            "terms": st.sampled_from([("tag=a",), ("tag=a", "field.x=1")]),
        },
    ),
)


class StoreMachine(Machine):
    """Several clients and workers on one queue."""

    all_queues = (QUEUE,)

    def __init__(self, bench: Bench) -> None:
        self.model = Model(EPOCH_MS)
        super().__init__(bench, self.model)
        self.call = 0
        #: Worker -> the number of its latest claim.
        self.last_calls: dict[str, int] = {}
        #: run -> its id, for every run ever made
        self.ids_of: dict[str, str] = {}

    def find(self, queue: str, run: str) -> Run | None:
        return self.model.runs.get(run)

    @initialize()
    def begin(self) -> None:
        """Two jobs run already: examples are short, and most of what can go wrong begins with a claim."""
        plain: list[Any] = [("", 0, 0, None, {}), ("a", 0, 0, None, {}), ("", 0, 0, None, {})]
        self.enqueue(plain, is_repeated=False)
        self.claim("w1", 2, is_repeated=False)

    # --- time --------------------------------------------------------------------------------------------------

    @rule(ms=st.sampled_from([1, 999, 1_000, 1_001, 2_200, 2_201, 4_499, 4_500, 9_000]))
    def time_passes(self, ms: int) -> None:
        self.pass_time(ms)

    @rule(worker=workers, ms=st.sampled_from([1_499, 1_500, 2_300]))
    def time_passes_while_a_worker_is_in_touch(self, worker: str, ms: int) -> None:
        for _ in range(3):
            self.time_passes(ms)
            self._beat(worker, [])

    # --- producers ---------------------------------------------------------------------------------------------

    @rule(batch=st.lists(new_runs, min_size=1, max_size=3), is_repeated=st.booleans())
    def enqueue(self, batch: list[Any], is_repeated: bool) -> None:
        jobs = [_new_job(*parts) for parts in batch]
        made = self.do(self.store("client").enqueue(QUEUE, jobs), is_repeated)
        for one, (id, priority, delay, expiry, options) in zip(made, batch, strict=True):
            holder = self.model.holder(id) if id else None
            assert one.is_new == (holder is None)
            if holder is not None:
                assert one.run == holder.run
                continue
            assert one.run > max(self.ids_of, default=""), "runs only grow"
            due, expires = self.model.now + delay, None if expiry is None else self.model.now + expiry
            self.ids_of[one.run] = one.id
            self.model.add(Run(one.run, one.id, priority, due, "pending", expires=expires, deadline=expires, **options))

    @rule(data=st.data(), parts=new_runs)
    def enqueue_a_known_id(self, data: Chance, parts: Any) -> None:
        """Also one that was made up, and one whose run is being stopped, or long gone."""
        ref = self._some_run(data, lambda run: run.is_finished)
        self.enqueue([(ref.id, *parts[1:])], is_repeated=False)

    @rule(data=st.data(), verb=st.sampled_from(["any", "any", "waiting", "delete"]), is_repeated=st.booleans())
    def cancel_or_delete(self, data: Chance, verb: str, is_repeated: bool) -> None:
        ref = self._some_run(data, lambda run: not run.is_finished)
        run, client = _run(ref), self.store("client")
        if verb == "delete":
            assert self.do(client.delete(ref), is_repeated) == self.model.delete(run)
        else:
            outcome = self.do(client.cancel(ref, reach=verb, reason="no"), is_repeated)
            assert outcome.removeprefix("ended ") == self.model.cancel(run, verb)
            assert outcome.startswith("ended ") == (outcome not in ("cancelled", "stopping", "processing", "missing"))

    @rule(data=st.data(), count=st.integers(1, 2), is_repeated=st.booleans())
    def redrive(self, data: Chance, count: int, is_repeated: bool) -> None:
        some = [self._some_run(data, lambda run: run.state == "failed") for _ in range(count)]
        outcomes = self.do(self.store("client").redrive(QUEUE, some), is_repeated)
        assert outcomes == [self.model.redrive(_run(ref)) for ref in some]

    @rule(
        what=st.sampled_from(OPERATIONS),
        worker=workers,
        is_repeated=st.booleans(),
    )
    def an_operator_acts(self, what: str, worker: str, is_repeated: bool) -> None:
        store = self.store(worker)
        if what == "purge":
            assert self.do(store.purge(QUEUE, 1), is_repeated) == self.model.purge(1)
        elif what == "leave":
            self.do(store.leave_queue(QUEUE), is_repeated)
        elif what == "sweep":
            assert self.do(store.apply_retention(QUEUE), is_repeated) is False
        else:
            self.do(store.pause_queue(QUEUE, wanted=what), is_repeated)
            self.model.is_paused = what == "paused"

    # --- workers -----------------------------------------------------------------------------------------------

    @rule(worker=workers, limit=st.sampled_from([0, 1, 1, 2, 4]), is_repeated=st.booleans())
    def claim(self, worker: str, limit: int, is_repeated: bool) -> None:
        self.call += 1
        call, token = self.call, f"t{self.call}"
        self.last_calls[worker] = call
        claim = self.store(worker).claim(QUEUE, limit, call_number=call, claim_token=token, lease_ms=LEASE_MS)
        brought = self.do(claim, is_repeated).jobs
        expected = self.model.claim(worker, token, limit)
        assert [(job.run, job.claim, job.counts) for job in brought] == [
            (run.run, run.claim, run.counts) for run in expected
        ]
        self.claimed += brought

    @rule(data=st.data(), verb=st.sampled_from(VERBS), delay=delays, is_repeated=st.booleans())
    def report(self, data: Chance, verb: str, delay: int | None, is_repeated: bool) -> None:
        """Any claim ever made reports: only the newest of a run may win."""
        job, model = self.some_claim(data), self.model
        run, claim = job.run, job.claim
        again = "final" if delay is None else f"+{delay}"
        started = "started" if delay is None else "unstarted"
        reports: dict[str, tuple[Report, Callable[[], None]]] = {
            "complete": (
                Completed(run, claim, f"{self.rule_of(job, JobState.COMPLETED)} noop", b"1"),
                lambda: model.complete(run),
            ),
            "fail": (
                Failed(run, claim, again, self.rule_of(job, JobState.FAILED), b'{"type":"E"}'),
                lambda: model.fail(run, delay),
            ),
            "snooze": (Snoozed(run, claim, f"+{delay or 0}"), lambda: model.snooze(run, delay or 0)),
            "return": (Returned(run, claim, started), lambda: model.hand_back(run, started)),
            "give up": (GivenUp(run, claim, "no"), lambda: model.give_up(run)),
            "confirm cancel": (CancelConfirmed(run, claim), lambda: model.give_up(run)),
            "lose": (Lost(run, claim), lambda: model.lose(run)),
        }
        report, apply = reports[verb]
        refused = self.do(self.store("w1").report(QUEUE, [report]), is_repeated)
        expected = model.refusal(run, claim)
        if verb == "confirm cancel" and expected == "cancelled":
            assert refused == {}, "the handler was being stopped, and has"
            return
        assert refused == ({} if expected is None else {run: expected})
        if expected is None:
            apply()

    @rule(data=st.data(), worker=workers, count=st.integers(1, 3), gives_up=st.booleans(), is_repeated=st.booleans())
    def heartbeat(self, data: Chance, worker: str, count: int, gives_up: bool, is_repeated: bool) -> None:
        named = {job.run: job for job in (self.some_claim(data) for _ in range(count))}
        self._beat(worker, list(named.values()), self.last_calls.get(worker) if gives_up else None, is_repeated)

    @rule(data=st.data())
    def log_and_progress(self, data: Chance) -> None:
        job = self.some_claim(data)
        store, owns = self.store("w1"), self.owns(job)
        before = self.driver.hash("progress").get(job.run)
        assert self.do(store.append_log(QUEUE, job.run, job.claim, 1, ["info x"])) == owns
        self.do(store.save_progress(QUEUE, [(job.run, job.claim, "1", str(secrets.randbits(40)), "")]))
        assert (self.driver.hash("progress").get(job.run) != before) == owns

    # --- what must hold ----------------------------------------------------------------------------------------

    @invariant()
    def every_run_is_in_exactly_one_index_and_that_is_what_the_model_says(self) -> None:
        with self.driver.redis.pipeline(transaction=False) as pipe:
            for name in (*STATES, "stopping", "expiring"):
                pipe.zrange(self.driver.key(name), 0, -1, withscores=True)
            pipe.hkeys(self.driver.key("jobs"))
            pipe.hgetall(self.driver.key("runs"))
            pipe.hgetall(self.driver.key("ids"))
            found: list[Any] = pipe.execute()
        indexes = {
            name: {run.decode(): int(score) for run, score in entries}
            for name, entries in zip((*STATES, "stopping", "expiring"), found, strict=False)
        }
        model = self.model
        for state in STATES:
            assert indexes[state].keys() == model.in_state(state), state
        # Equal as lists: the scores are the model's times and priorities, and the order is the model's order.
        assert [*indexes["pending"].items()] == [(run.run, run.priority * 2**42 + run.due) for run in model.pending()]
        assert [*indexes["scheduled"].items()] == [
            (run.run, run.due * 256 + run.priority + 100) for run in model.scheduled()
        ]
        assert {run.decode() for run in found[-3]} == {run.run for run in model.runs.values() if run.has_record}
        stopping = {run.run: run.lease for run in model.runs.values() if run.is_stopping}
        assert indexes["stopping"] == stopping
        leases = {run.run: run.lease for run in model.runs.values() if run.state == "processing"}
        assert indexes["processing"] == leases
        expiring = {run.run: run.expires for run in model.runs.values() if run.expires is not None}
        assert indexes["expiring"] == expiring
        self._check_lines({run.decode(): line.decode() for run, line in found[-2].items()})
        for id, run in found[-1].items():
            assert self.ids_of[run.decode()] == id.decode()

    @invariant()
    def what_is_found_by_task_and_by_term_is_what_there_is(self) -> None:
        kept = {run.run: run for run in self.model.runs.values() if run.has_record}
        with self.driver.redis.pipeline(transaction=False) as pipe:
            pipe.get(self.driver.key("task_index", "0000000"))
            pipe.hgetall(self.driver.key("terms"))
            pipe.zrange(self.driver.key("term", "tag=a"), 0, -1)
            column, terms, tagged = pipe.execute()
        assert {encode_run(n) for n, slot in enumerate(column or b"") if slot} == kept.keys()
        assert {run.decode() for run in tagged} == {run for run, one in kept.items() if "tag=a" in one.terms}
        assert {run.decode() for run in terms} >= {run for run, one in kept.items() if one.terms}

    @invariant()
    def what_was_counted_is_what_has_happened(self) -> None:
        last = self.model.now // MINUTE_MS
        (tally,) = self.do(CounterStore(self.redis_client, self.driver.keys).read([QUEUE], "minute", last - 60, last))
        (found,) = tally.total_by_task().values() or [Counts()]
        named = {name: getattr(found, name) for name in COUNTS[:8]}
        named |= {"waited_ms": found.wait.total_ms, "ran_ms": found.run.total_ms}
        assert named == {name: self.model.counted[name] for name in COUNTS}
        assert (found.wait.count, found.run.count) == (found.started, found.completed + found.failed)
        pages = Counter[int]()
        for added in tally.intervals.values():
            pages.update(added)
        assert +pages == +Counter(dict(enumerate(tally.totals)))

    def _check_lines(self, lines: dict[str, str]) -> None:
        """What happened to each run: state, claim and counts."""
        for run in self.model.runs.values():
            line = lines.pop(run.run, None)
            if line is None:
                assert (run.attempt, run.is_finished) == (0, False)
                continue
            state, claim, *rest = line.split(" ")
            assert state == ("waiting" if run.state in ("pending", "scheduled") else run.state)
            assert claim == run.claim
            assert tuple(map(int, rest[3:8])) == (run.attempt, run.failures, run.stalls, run.snoozes, run.handbacks)
        assert not lines, "lines of runs that the model has forgotten"

    # --- within ------------------------------------------------------------------------------------------------

    def _some_run(self, data: Chance, is_preferred: Callable[[Run], bool]) -> JobRef:
        """Mostly one of those that the call is for; sometimes any that ever was."""
        preferred = [run.run for run in self.model.runs.values() if is_preferred(run)]
        run = choose(data, [*preferred * 3, *self.ids_of])
        return JobRef(QUEUE, self.ids_of[run], run)

    def _beat(
        self, worker: str, jobs: list[ClaimedJob], given_up: int | None = None, is_repeated: bool = False
    ) -> None:
        held = [(job.run, job.claim) for job in jobs]
        told = self.do(self.store(worker).heartbeat(QUEUE, held, given_up=given_up, lease_ms=LEASE_MS), is_repeated)
        assert told == self.model.heartbeat(worker, held, f"t{given_up}" if given_up else "")


def _new_job(id: str, priority: int, delay: int, expiry: int | None, options: dict[str, Any]) -> NewJob:
    options = dict(options)
    if options.pop("keeps_nothing", False):
        options["keep"] = Keep(finished=0, failed=0)
    due = f"+{delay}" if delay else ""
    return new_job(id, priority=priority, due=due, expiry="" if expiry is None else f"+{expiry}", **options)


def _run(ref: JobRef) -> str:
    assert ref.run is not None
    return ref.run


@pytest.mark.requirement(
    "S0-3", "S0-5", "S0-8", "S0-15", "S2-7", "S2-9", "S2-19", "S4-24", "S4-27", "S4-33", "S4-34", "S4-36", "Q-9"
)
@pytest.mark.timeout(7_200 if IS_LONG else 600)
def test_the_store_does_what_a_dictionary_would(bench: Bench) -> None:
    """In any order of calls."""
    run_examples(lambda: StoreMachine(bench), examples=600 if IS_LONG else 100, steps=60 if IS_LONG else 40)


STEPS: Final[Steps[StoreMachine]] = (
    (2, lambda m, rng: m.time_passes(rng.choice([1, 999, 1_000, 2_500, 3_001, 4_500]))),
    (3, lambda m, rng: m.time_passes_while_a_worker_is_in_touch(rng.choice(WORKERS), rng.choice([1_499, 1_500]))),
    (5, lambda m, rng: m.enqueue([_random_run(rng) for _ in range(rng.randint(1, 3))], rarely(rng))),
    (2, lambda m, rng: m.enqueue_a_known_id(rng, _random_run(rng))),
    (2, lambda m, rng: m.cancel_or_delete(rng, rng.choice(["any", "any", "waiting", "delete"]), rarely(rng))),
    (2, lambda m, rng: m.redrive(rng, rng.randint(1, 2), rarely(rng))),
    (1, lambda m, rng: m.an_operator_acts(rng.choice(OPERATIONS), rng.choice(WORKERS), rarely(rng))),
    (5, lambda m, rng: m.claim(rng.choice(WORKERS), rng.choice([0, 1, 1, 2, 4]), rarely(rng))),
    (9, lambda m, rng: m.report(rng, rng.choice(VERBS), rng.choice(DELAYS), rarely(rng))),
    (2, lambda m, rng: m.heartbeat(rng, rng.choice(WORKERS), rng.randint(1, 3), rarely(rng), rarely(rng))),
    (1, lambda m, rng: m.log_and_progress(rng)),
)


@pytest.mark.requirement("Q-9")
@pytest.mark.timeout(7_200 if IS_LONG else 120)
def test_the_store_does_what_a_dictionary_would_on_long_walks(bench: Bench) -> None:
    """The same machine, walked at random for longer."""

    def begun() -> StoreMachine:
        machine = StoreMachine(bench)
        machine.begin()
        return machine

    def look(machine: StoreMachine, rng: random.Random) -> None:
        machine.every_run_is_in_exactly_one_index_and_that_is_what_the_model_says()
        if rng.random() < 0.02:
            machine.what_was_counted_is_what_has_happened()
            machine.what_is_found_by_task_and_by_term_is_what_there_is()

    walk(begun, STEPS, walks=300 if IS_LONG else 40, length=120, look=look)


def _random_run(rng: random.Random) -> Any:
    options: dict[str, Any] = {}
    if rng.random() < 0.3:
        options["max_stalls"] = rng.randint(0, 1)
    if rng.random() < 0.15:
        options["at_most_once"] = True
    if rng.random() < 0.25:
        options["keeps_nothing"] = True
    if rng.random() < 0.25:
        options["terms"] = rng.choice([("tag=a",), ("tag=a", "tag=b")])
    expiry = rng.choice([1, 2_000, 6_000]) if rng.random() < 0.2 else None
    return rng.choice(IDS), rng.choice(PRIORITIES), rng.choice(DELAYS) or 0, expiry, options
