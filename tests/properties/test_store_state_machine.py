"""The store compared with a dictionary, whatever clients, workers and time do, and however often a call is sent."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeVar, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from rota.core.history import COUNTS, MINUTE_MS, Counted
from rota.core.job import JobRef, Keep, encode_run
from rota.core.states import JobState
from rota.store import scripts
from rota.store.door import NewJob
from rota.store.gateway import Argument, Call, Gateway
from rota.store.keys import Keys
from rota.store.reports import Cancelled as GivenUp
from rota.store.reports import Claimed, Completed, Failed, Lost, Report, Returned, Snoozed
from rota.store.store import Store
from rota.store.tallies import Tallies
from tests.leaks import delete_keys
from tests.properties.store_model import LEASE_MS, Model, Run
from tests.scale import IS_LONG
from tests.servers import Server
from tests.store.driver import QUEUE, STATES, Driver, new_job

T = TypeVar("T")
#: A clock that stands still until it is moved, so that the model can be exact to the millisecond.
FROZEN: Final = "tests:frozen"
EPOCH_MS: Final = 2_000_000_000_000  # ahead of every clock: what the server itself expires stays

WORKERS: Final = ("w1", "w2")
IDS: Final = ("", "a", "a", "b")
PRIORITIES: Final = (-10, 0, 0, 0, 10)
#: None: there is no next time.
DELAYS: Final = (None, 0, 0, 1, 1_000, 5_000)
OPERATIONS: Final = ("open", "open", "paused", "purge", "leave", "sweep")
VERBS: Final = ("complete", "fail", "fail", "snooze", "return", "give up", "lose")
Chance = st.DataObject | random.Random

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


class Repeating(Gateway):
    """Sends every script twice when asked to, as if the first answer had been lost."""

    repeats = False

    async def run(self, name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        return await self._maybe_twice(partial(super().run, name, keys, arguments))

    async def run_many(self, calls: Sequence[Call]) -> list[Any]:
        return await self._maybe_twice(partial(super().run_many, calls))

    async def _maybe_twice(self, send: Callable[[], Awaitable[T]]) -> T:
        first = await send()
        if self.repeats:
            await send()
        return first


class StoreMachine(RuleBasedStateMachine):
    """Several clients and workers on one queue."""

    def __init__(self, driver: Driver, gateway: Repeating, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.loop = loop
        self.driver = driver
        self.driver.keys = Keys(f"p{secrets.token_hex(5)}")
        self.gateway = gateway
        self.model = Model(EPOCH_MS)
        self.call = 0
        #: every claim ever made: what the late ones say must change nothing
        self.claimed: list[Claimed] = []
        #: run -> its id, for every run ever made
        self.ids_of: dict[str, str] = {}
        self.stores: dict[str, Store] = {}
        self._set_clock()

    @initialize()
    def begin(self) -> None:
        """Two jobs run already: examples are short, and most of what can go wrong begins with a claim."""
        plain: list[Any] = [("", 0, 0, None, {}), ("a", 0, 0, None, {}), ("", 0, 0, None, {})]
        self.enqueue(plain, is_repeated=False)
        self.claim("w1", 2, is_repeated=False)

    # --- time --------------------------------------------------------------------------------------------------

    @rule(ms=st.sampled_from([1, 999, 1_000, 1_001, 2_200, 2_201, 4_499, 4_500, 9_000]))
    def time_passes(self, ms: int) -> None:
        self.model.now += ms
        self._set_clock()

    @rule(worker=workers, ms=st.sampled_from([1_499, 1_500, 2_300]))
    def time_passes_while_a_worker_is_in_touch(self, worker: str, ms: int) -> None:
        for _ in range(3):
            self.time_passes(ms)
            self._beat(worker, [])

    # --- producers ---------------------------------------------------------------------------------------------

    @rule(batch=st.lists(new_runs, min_size=1, max_size=3), is_repeated=st.booleans())
    def enqueue(self, batch: list[Any], is_repeated: bool) -> None:
        jobs = [_new_job(*parts) for parts in batch]
        made = self._do(self._store("client").enqueue(QUEUE, jobs), is_repeated)
        for one, (id, priority, delay, expiry, options) in zip(made, batch, strict=True):
            holder = self.model.holder(id) if id else None
            assert one.is_new == (holder is None)
            if holder is not None:
                assert one.run == holder.run
                continue
            assert one.run > max(self.ids_of, default=""), "runs only grow"
            due, expires = self.model.now + delay, None if expiry is None else self.model.now + expiry
            self.ids_of[one.run] = one.id
            self.model.add(Run(one.run, one.id, priority, due, "pending", expires=expires, **options))

    @rule(data=st.data(), parts=new_runs)
    def enqueue_a_known_id(self, data: Chance, parts: Any) -> None:
        """Also one that was made up, and one whose run is being stopped, or long gone."""
        ref = self._some_run(data, lambda run: run.is_finished)
        self.enqueue([(ref.id, *parts[1:])], is_repeated=False)

    @rule(data=st.data(), verb=st.sampled_from(["any", "any", "waiting", "delete"]), is_repeated=st.booleans())
    def cancel_or_delete(self, data: Chance, verb: str, is_repeated: bool) -> None:
        ref = self._some_run(data, lambda run: not run.is_finished)
        run, client = _run(ref), self._store("client")
        if verb == "delete":
            assert self._do(client.delete(ref), is_repeated) == self.model.delete(run)
        else:
            outcome = self._do(client.cancel(ref, reach=verb, reason="no"), is_repeated)
            assert outcome.removeprefix("ended ") == self.model.cancel(run, verb)
            assert outcome.startswith("ended ") == (outcome not in ("cancelled", "stopping", "processing", "missing"))

    @rule(data=st.data(), count=st.integers(1, 2), is_repeated=st.booleans())
    def redrive(self, data: Chance, count: int, is_repeated: bool) -> None:
        some = [self._some_run(data, lambda run: run.state == "failed") for _ in range(count)]
        outcomes = self._do(self._store("client").redrive(QUEUE, some), is_repeated)
        assert outcomes == [self.model.redrive(_run(ref)) for ref in some]

    @rule(
        what=st.sampled_from(OPERATIONS),
        worker=workers,
        is_repeated=st.booleans(),
    )
    def an_operator_acts(self, what: str, worker: str, is_repeated: bool) -> None:
        store = self._store(worker)
        if what == "purge":
            assert self._do(store.purge(QUEUE, 1), is_repeated) == self.model.purge(1)
        elif what == "leave":
            self._do(store.leave(QUEUE), is_repeated)
            self.model.leave(worker)
        elif what == "sweep":
            assert self._do(store.sweep(QUEUE), is_repeated) is False
        else:
            self._do(store.pause(QUEUE, wanted=what), is_repeated)
            self.model.is_paused = what == "paused"

    # --- workers -----------------------------------------------------------------------------------------------

    @rule(worker=workers, limit=st.sampled_from([0, 1, 1, 2, 4]), is_repeated=st.booleans())
    def claim(self, worker: str, limit: int, is_repeated: bool) -> None:
        self.call += 1
        call, token = self.call, f"t{self.call}"
        claim = self._store(worker).claim(QUEUE, limit, call=call, token=token, lease_ms=LEASE_MS)
        brought = self._do(claim, is_repeated).jobs
        expected = self.model.claim(worker, token, limit)
        assert [(job.run, job.claim, job.counts) for job in brought] == [
            (run.run, run.claim, run.counts) for run in expected
        ]
        self.claimed += brought

    @rule(data=st.data(), verb=st.sampled_from(VERBS), delay=delays, is_repeated=st.booleans())
    def report(self, data: Chance, verb: str, delay: int | None, is_repeated: bool) -> None:
        """Any claim ever made reports: only the newest of a run may win."""
        job, model = self._some_claim(data), self.model
        run, claim = job.run, job.claim
        again = "final" if delay is None else f"+{delay}"
        started = "started" if delay is None else "unstarted"
        reports: dict[str, tuple[Report, Callable[[], None]]] = {
            "complete": (
                Completed(run, claim, f"{self._rule(job, JobState.COMPLETED)} noop", b"1"),
                lambda: model.complete(run),
            ),
            "fail": (
                Failed(run, claim, again, self._rule(job, JobState.FAILED), b'{"type":"E"}'),
                lambda: model.fail(run, delay),
            ),
            "snooze": (Snoozed(run, claim, f"+{delay or 0}"), lambda: model.snooze(run, delay or 0)),
            "return": (Returned(run, claim, started), lambda: model.hand_back(run, started)),
            "give up": (GivenUp(run, claim, "no"), lambda: model.give_up(run)),
            "lose": (Lost(run, claim), lambda: model.lose(run)),
        }
        report, apply = reports[verb]
        refused = self._do(self._store("w1").report(QUEUE, [report]), is_repeated)
        expected = model.refusal(run, claim)
        assert refused == ({} if expected is None else {run: expected})
        if expected is None:
            apply()

    @rule(data=st.data(), worker=workers, count=st.integers(1, 3), is_repeated=st.booleans())
    def heartbeat(self, data: Chance, worker: str, count: int, is_repeated: bool) -> None:
        named = {job.run: job for job in (self._some_claim(data) for _ in range(count))}
        self._beat(worker, list(named.values()), is_repeated)

    @rule(data=st.data())
    def log_and_progress(self, data: Chance) -> None:
        job = self._some_claim(data)
        store, owns = self._store("w1"), self._owns(job)
        before = self.driver.hash("progress").get(job.run)
        assert self._do(store.log(QUEUE, job.run, job.claim, 1, ["info x"])) == owns
        self._do(store.progress(QUEUE, [(job.run, job.claim, "1", str(secrets.randbits(40)), "")]))
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
            pipe.get(self.driver.key("column", "0000000"))
            pipe.hgetall(self.driver.key("terms"))
            pipe.zrange(self.driver.key("term", "tag=a"), 0, -1)
            column, terms, tagged = pipe.execute()
        assert {encode_run(n) for n, slot in enumerate(column or b"") if slot} == kept.keys()
        assert {run.decode() for run in tagged} == {run for run, one in kept.items() if "tag=a" in one.terms}
        assert {run.decode() for run in terms} >= {run for run, one in kept.items() if one.terms}

    @invariant()
    def what_was_counted_is_what_has_happened(self) -> None:
        last = self.model.now // MINUTE_MS
        (tally,) = self._do(Tallies(self.gateway, self.driver.keys).read([QUEUE], "minute", last - 60, last))
        (found,) = tally.by_task().values() or [Counted()]
        named = {name: getattr(found, name) for name in COUNTS[:8]}
        named |= {"waited_ms": found.wait.total_ms, "ran_ms": found.run.total_ms}
        assert named == {name: self.model.counted[name] for name in COUNTS}
        assert (found.wait.count, found.run.count) == (found.started, found.completed + found.failed)
        pages = Counter[int]()
        for added in tally.pages.values():
            pages.update(added)
        assert +pages == +Counter(dict(enumerate(tally.sums)))

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
            assert tuple(map(int, rest[3:8])) == (
                run.attempt, run.failures, run.stalls, run.snoozes, run.handbacks
            )  # fmt: skip
        assert not lines, "lines of runs that the model has forgotten"

    def teardown(self) -> None:
        try:
            self.driver.check()
        finally:
            delete_keys(self.driver.redis, self.driver.keys.namespace)

    # --- within ------------------------------------------------------------------------------------------------

    def _set_clock(self) -> None:
        self.driver.redis.set(FROZEN, self.model.now, px=600_000)

    def _store(self, participant: str) -> Store:
        store = self.stores.get(participant)
        if store is None:
            store = self.stores[participant] = Store(self.gateway, self.driver.keys, participant)
        return store

    def _do(self, call: Coroutine[Any, Any, T], is_repeated: bool = False) -> T:
        self.gateway.repeats = is_repeated
        return self.loop.run_until_complete(call)

    def _some_run(self, data: Chance, is_preferred: Callable[[Run], bool]) -> JobRef:
        """Mostly one of those that the call is for; sometimes any that ever was."""
        preferred = [run.run for run in self.model.runs.values() if is_preferred(run)]
        run = _choose(data, [*preferred * 3, *self.ids_of])
        return JobRef(QUEUE, self.ids_of[run], run)

    def _some_claim(self, data: Chance) -> Claimed:
        """Mostly one that owns its run; sometimes one that lost it."""
        owning = [job for job in self.claimed if self._owns(job)]
        return _choose(data, [*owning * 3, *self.claimed])

    def _owns(self, job: Claimed) -> bool:
        run = self.model.runs.get(job.run)
        return run is not None and run.state == "processing" and run.claim == job.claim

    def _beat(self, worker: str, jobs: list[Claimed], is_repeated: bool = False) -> None:
        held = [(job.run, job.claim) for job in jobs]
        told = self._do(self._store(worker).heartbeat(QUEUE, held, lease_ms=LEASE_MS), is_repeated)
        assert told == self.model.heartbeat(worker, held)

    def _rule(self, job: Claimed, state: JobState) -> str:
        run = self.model.runs.get(job.run)
        keep = Keep(finished=0, failed=0) if run is not None and run.keeps_nothing else Keep()
        return keep.rule(state)


def _new_job(id: str, priority: int, delay: int, expiry: int | None, options: dict[str, Any]) -> NewJob:
    options = dict(options)
    if options.pop("keeps_nothing", False):
        options["keep"] = Keep(finished=0, failed=0)
    due = f"+{delay}" if delay else ""
    return new_job(id, priority=priority, due=due, expiry="" if expiry is None else f"+{expiry}", **options)


def _run(ref: JobRef) -> str:
    assert ref.run is not None
    return ref.run


def _choose(data: Chance, options: Sequence[T]) -> T:
    return data.choice(options) if isinstance(data, random.Random) else data.draw(st.sampled_from(options))


@pytest.fixture
def new_machine(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], StoreMachine]]:
    """Makes machines that share their connections; their clock stands still until they move it."""
    plain = scripts._text_of

    def with_frozen_clock(name: str, clock: str = "") -> str:
        if name == "now_ms" and clock == FROZEN:
            return f'local function now_ms()\n  return tonumber(redis.call("GET", "{FROZEN}"))\nend\n'
        return plain(name, clock)

    monkeypatch.setattr(scripts, "_text_of", with_frozen_clock)
    loop = asyncio.new_event_loop()
    driver = Driver(server, "p")
    gateway = Repeating(driver.gateway.address, clock=FROZEN)
    yield lambda: StoreMachine(driver, gateway, loop)
    driver.redis.delete(FROZEN)
    loop.run_until_complete(gateway.close())
    loop.run_until_complete(driver.close())
    loop.close()


@pytest.mark.timeout(7_200 if IS_LONG else 600)
def test_the_store_does_what_a_dictionary_would(new_machine: Callable[[], StoreMachine]) -> None:
    """S0-3, S0-5, S0-8, S0-15, S2-7, S2-9, S2-19, S4-24, S4-27, S4-33, S4-34, S4-36, Q-9: in any order of calls."""
    run_state_machine_as_test(
        cast("type[StoreMachine]", new_machine),
        settings=settings(
            max_examples=600 if IS_LONG else 100,
            stateful_step_count=60 if IS_LONG else 40,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
        ),
    )


#: What a walk does next, and how often. Rarer and longer histories come up here than above; what fails here can be
#: walked again by its seed, and made short by hand.
STEPS: Final[Sequence[tuple[int, Callable[[StoreMachine, random.Random], None]]]] = (
    (2, lambda m, rng: m.time_passes(rng.choice([1, 999, 1_000, 2_500, 3_001, 4_500]))),
    (3, lambda m, rng: m.time_passes_while_a_worker_is_in_touch(rng.choice(WORKERS), rng.choice([1_499, 1_500]))),
    (5, lambda m, rng: m.enqueue([_random_run(rng) for _ in range(rng.randint(1, 3))], rng.random() < 0.3)),
    (2, lambda m, rng: m.enqueue_a_known_id(rng, _random_run(rng))),
    (2, lambda m, rng: m.cancel_or_delete(rng, rng.choice(["any", "any", "waiting", "delete"]), rng.random() < 0.3)),
    (2, lambda m, rng: m.redrive(rng, rng.randint(1, 2), rng.random() < 0.3)),
    (1, lambda m, rng: m.an_operator_acts(rng.choice(OPERATIONS), rng.choice(WORKERS), rng.random() < 0.3)),
    (5, lambda m, rng: m.claim(rng.choice(WORKERS), rng.choice([0, 1, 1, 2, 4]), rng.random() < 0.3)),
    (9, lambda m, rng: m.report(rng, rng.choice(VERBS), rng.choice(DELAYS), rng.random() < 0.3)),
    (2, lambda m, rng: m.heartbeat(rng, rng.choice(WORKERS), rng.randint(1, 3), rng.random() < 0.3)),
    (1, lambda m, rng: m.log_and_progress(rng)),
)


@pytest.mark.timeout(7_200 if IS_LONG else 120)
def test_the_store_does_what_a_dictionary_would_on_long_walks(new_machine: Callable[[], StoreMachine]) -> None:
    """Q-9: the same machine, walked at random for longer."""
    seed = int(os.environ.get("ROTA_TEST_SEED") or secrets.randbits(32))
    weights = [weight for weight, _ in STEPS]
    for walk in range(300 if IS_LONG else 40):
        rng = random.Random(f"{seed}-{walk}")
        machine = new_machine()
        machine.begin()
        try:
            for _, step in rng.choices(STEPS, weights, k=120):
                step(machine, rng)
                machine.every_run_is_in_exactly_one_index_and_that_is_what_the_model_says()
            machine.what_was_counted_is_what_has_happened()
            machine.what_is_found_by_task_and_by_term_is_what_there_is()
            machine.teardown()
        except Exception as error:
            error.add_note(f"walk it again with ROTA_TEST_SEED={seed}; it was walk {walk}")
            raise


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
