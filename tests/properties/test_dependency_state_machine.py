"""The same id again, locks and dependencies over two queues, compared with dictionaries, whatever is called when."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from rota.core.dependencies import checked_parents, may_fail
from rota.core.ids import JobRef
from rota.core.job_options import Keep
from rota.core.same_id_policy import Update
from rota.core.state_transitions import JobState
from rota.errors import JobNotFound
from rota.store.create_dependents_and_deliver_outcomes import HOLD_MS, SLICE, Edge, JobWithParents
from rota.store.enqueue_batcher import IGNORE, NewJob
from rota.store.report_encoding import Cancelled as GivenUp
from rota.store.report_encoding import Completed, Failed, Lost, Report, Returned, Snoozed
from tests.properties.dependency_model import LEASE_MS, Asked, Key, Model, Run
from tests.properties.state_machine import EPOCH_MS, Bench, Chance, Machine, Steps, choose, rarely, run_examples, walk
from tests.scale import IS_LONG
from tests.store.driver import STATES, body

QUEUES: Final = ("q", "r")
IDS: Final = ("", "", "a", "a", "b")
LOCKS: Final = ("", "", "l", "m")
PRIORITIES: Final = (-10, 0, 0, 0, 10)
DELAYS: Final = (None, 0, 0, 0, 1_000, 5_000)
VERBS: Final = ("complete", "complete", "fail", "fail", "snooze", "return", "give up", "lose")
UPDATES: Final = {
    update.flags: update
    for update in (
        Update(),
        Update(run_at=False),
        Update(run_at="if_later", data=False),
        Update(run_at="if_earlier", options=False),
        Update(data=False, retry=False, max_stalls=False, options=False, run_at=False),
        Update(reset_counts=True),
    )
}
FLAGS: Final = (IGNORE.flags, Update().flags, *UPDATES)

queues = st.sampled_from(QUEUES)
wishes = st.tuples(
    st.sampled_from(IDS),
    st.sampled_from(PRIORITIES),
    st.sampled_from(DELAYS).map(lambda delay: delay or 0),
    st.none() | st.none() | st.sampled_from([1, 2_000, 6_000]),
    st.sampled_from(LOCKS),
    st.sampled_from([3, 3, 0]),
    st.sampled_from([False, False, False, True]),
    st.sampled_from(FLAGS),
)
Wish = tuple[str, int, int, int | None, str, int, bool, str]


class TiesMachine(Machine):
    """Producers, workers and couriers on two queues."""

    all_queues = QUEUES

    def __init__(self, bench: Bench) -> None:
        self.model = Model(EPOCH_MS, QUEUES)
        super().__init__(bench, self.model)
        self.client = self.store("client")
        self.ties = self.client.dependencies
        self.call = self.data = 0
        #: every run ever made
        self.refs: dict[Key, JobRef] = {}

    def find(self, queue: str, run: str) -> Run | None:
        return self.model.runs.get((queue, run))

    @initialize()
    def begin(self) -> None:
        """One runs already, which is where most of what can go wrong begins."""
        self.enqueue("q", [("a", 0, 0, None, "l", 3, False, "-"), ("", 0, 0, None, "l", 3, False, "-")], False)
        self.claim("q", 1, False)
        self.after(random.Random(1), "r", ("b", 0, 0, None, "", 3, False, "-"), 1, False)

    # --- time --------------------------------------------------------------------------------------------------

    @rule(ms=st.sampled_from([1, 999, 2_000, 5_000]))
    def time_passes(self, ms: int) -> None:
        self.pass_time(ms)

    @rule(queue=queues)
    def leases_run_out(self, queue: str) -> None:
        for _ in range(6):
            self.time_passes(1_500)
            self.do(self.store("observer").heartbeat(queue, [], lease_ms=LEASE_MS))
            self.model.tick(queue)
        self.claim(queue, 0, False)

    # --- producers ---------------------------------------------------------------------------------------------

    @rule(queue=queues, batch=st.lists(wishes, min_size=1, max_size=3), is_repeated=st.booleans())
    def enqueue(self, queue: str, batch: list[Wish], is_repeated: bool) -> None:
        asked = [self._asked(wish) for wish in batch]
        made = self.do(self.client.enqueue(queue, [self._job(one) for one in asked]), is_repeated)
        for one, wanted in zip(made, asked, strict=True):
            outcome, holder = self.model.enqueue(queue, wanted)
            assert one.outcome == outcome
            if outcome != "made":
                assert holder is not None
                assert one.run == holder.run
                continue
            self._made(queue, one.run, one.id)
            self.model.make(queue, one.run, one.id, wanted, holder)

    @rule(data=st.data(), wish=wishes, is_repeated=st.booleans())
    def enqueue_a_known_id(self, data: Chance, wish: Wish, is_repeated: bool) -> None:
        """Also one that was made up; one that runs, is being stopped, or is long gone."""
        ref = self._some_run(data, lambda run: run.is_busy or run.holder is not None)
        self.enqueue(ref.queue, [(ref.id, *wish[1:])], is_repeated)

    @rule(data=st.data(), queue=queues, wish=wishes, count=st.integers(1, 3), is_repeated=st.booleans())
    def after(self, data: Chance, queue: str, wish: Wish, count: int, is_repeated: bool) -> None:
        parents = [self._some_run(data, lambda run: run.is_unfinished) for _ in range(count)]
        self._tie(queue, wish, [may_fail(ref) if choose(data, [0, 0, 1]) else ref for ref in parents], is_repeated)

    @rule(data=st.data(), wish=wishes, is_repeated=st.booleans())
    def after_the_same_again(self, data: Chance, wish: Wish, is_repeated: bool) -> None:
        tied = [run for run in self.model.runs.values() if run.after]
        if not tied:
            return
        again = choose(data, tied)
        parents = [may_fail(name[1:]) if name.startswith("?") else name for name in again.after]
        self._tie(again.queue, (again.id, *wish[1:]), parents, is_repeated)

    @rule(data=st.data(), queue=queues, wish=wishes, is_tied=st.booleans())
    def a_producer_dies(self, data: Chance, queue: str, wish: Wish, is_tied: bool) -> None:
        """What it prepared never becomes visible; its parents may go on telling it things."""
        ref = self._some_run(data, lambda run: run.is_unfinished)
        named = checked_parents([ref])
        asked = replace(self._asked(wish), keeps_nothing=False, after=tuple(map(str, named)))
        prepared, held = self.do(self.ties.prepare_dependents(queue, {0: JobWithParents(self._job(asked), named)}))
        outcome, _ = self.model.enqueue(queue, replace(asked, flags="-"))
        assert bool(held) == (outcome != "untied")
        parent = self.model.stands(*_key(ref), ref.id)
        if is_tied and prepared and parent is not None:
            self.do(
                self.ties.register_dependents(
                    [Edge(queue, one.run, parent) for one in prepared for parent in one.parents]
                )
            )
            self.model.register(parent, (queue, prepared[0].run), str(ref))

    @rule(queue=queues)
    def sweep(self, queue: str) -> None:
        """Nothing is old enough, but for what was never made visible."""
        self.do(self.client.apply_retention(queue))

    @rule(data=st.data(), verb=st.sampled_from(["any", "any", "waiting", "delete"]), is_repeated=st.booleans())
    def cancel_or_delete(self, data: Chance, verb: str, is_repeated: bool) -> None:
        ref = self._some_run(data, lambda run: run.is_unfinished)
        if verb == "delete":
            assert self.do(self.client.delete(ref), is_repeated) == self.model.delete(*_key(ref))
        else:
            outcome = self.do(self.client.cancel(ref, reach=verb, reason="no"), is_repeated)
            assert outcome.removeprefix("ended ") == self.model.cancel(*_key(ref), verb)

    @rule(data=st.data(), is_repeated=st.booleans())
    def redrive(self, data: Chance, is_repeated: bool) -> None:
        ref = self._some_run(data, lambda run: run.state == "failed")
        (outcome,) = self.do(self.client.redrive(ref.queue, [ref]), is_repeated)
        assert outcome == self.model.redrive(*_key(ref))

    @rule(queue=queues, is_repeated=st.booleans())
    def purge(self, queue: str, is_repeated: bool) -> None:
        assert self.do(self.client.purge(queue, 1), is_repeated) == self.model.purge_one(queue)

    # --- workers -----------------------------------------------------------------------------------------------

    @rule(queue=queues, limit=st.sampled_from([0, 1, 1, 2, 4]), is_repeated=st.booleans())
    def claim(self, queue: str, limit: int, is_repeated: bool) -> None:
        self.call += 1
        token = f"t{self.call}"
        claim = self.store("w1").claim(queue, limit, call_number=self.call, claim_token=token, lease_ms=LEASE_MS)
        brought = self.do(claim, is_repeated).jobs
        expected = self.model.claim(queue, token, limit)
        assert [(job.run, job.claim, job.counts) for job in brought] == [
            (run.run, run.claim, run.counts) for run in expected
        ]
        self.claimed += brought

    @rule(data=st.data(), verb=st.sampled_from(VERBS), delay=st.sampled_from(DELAYS), is_repeated=st.booleans())
    def report(self, data: Chance, verb: str, delay: int | None, is_repeated: bool) -> None:
        """Any claim ever made reports: only the newest of a run may win."""
        job = self.some_claim(data)
        run, claim = job.run, job.claim
        started = "started" if delay is None else "unstarted"
        reports: dict[str, Report] = {
            "complete": Completed(run, claim, self.rule_of(job, JobState.COMPLETED), b"1"),
            "fail": Failed(
                run, claim, "final" if delay is None else f"+{delay}", self.rule_of(job, JobState.FAILED), b"{}"
            ),
            "snooze": Snoozed(run, claim, f"+{delay or 0}"),
            "return": Returned(run, claim, started),
            "give up": GivenUp(run, claim, "no"),
            "lose": Lost(run, claim),
        }
        refused = self.do(self.store("w1").report(job.queue, [reports[verb]]), is_repeated)
        expected = self.model.refusal(job.queue, run, claim)
        assert refused == ({} if expected is None else {run: expected})
        if expected is None:
            self.model.end(self.model.runs[job.queue, run], verb, delay)

    # --- couriers ----------------------------------------------------------------------------------------------

    @rule(queue=queues, is_repeated=st.booleans())
    def post(self, queue: str, is_repeated: bool) -> None:
        self.do(self.ties.deliver_outbox(queue), is_repeated)
        self.model.post(queue)

    @rule(queue=queues)
    def a_courier_dies(self, queue: str) -> None:
        keys = self.client.script_keys("take_outbox", queue)
        self.do(self.redis_client.run("take_outbox", keys, [SLICE, HOLD_MS]))
        self.model.take_and_die(queue)

    # --- what must hold ----------------------------------------------------------------------------------------

    @invariant()
    def all_is_as_the_model_says(self) -> None:
        for queue in QUEUES:
            self._compare(queue)

    def _compare(self, queue: str) -> None:
        model, driver = self.model, self.driver
        indexes = (*STATES, "stopping", "expiring", "outbox")
        hashes = ("jobs", "runs", "ids", "locks", "follow_ups", "merged_into")
        with driver.redis.pipeline(transaction=False) as pipe:
            for name in indexes:
                pipe.zrange(driver.key(name, queue=queue), 0, -1, withscores=True)
            for name in hashes:
                pipe.hgetall(driver.key(name, queue=queue))
            found: list[Any] = pipe.execute()
        index = {
            name: {run.decode(): int(score) for run, score in entries}
            for name, entries in zip(indexes, found, strict=False)
        }
        table = {
            name: {key.decode(): value.decode() for key, value in entries.items()}
            for name, entries in zip(hashes, found[len(indexes) :], strict=True)
        }
        states = {run: state for state in STATES for run in index[state]}
        assert states == model.states(queue)
        for state in ("pending", "blocked"):
            assert [*index[state].items()] == [(run.run, run.place) for run in model.in_state(queue, state)], state
        assert [*index["scheduled"].items()] == [
            (run.run, run.due * 256 + run.priority + 100) for run in model.in_state(queue, "scheduled")
        ]
        runs = model.of(queue)
        assert index["stopping"].keys() == {run.run for run in runs if run.is_stopping}
        assert index["expiring"] == {run.run: run.expires for run in runs if run.expires is not None}
        assert index["outbox"].keys() == {
            run for (of, run), news in model.news.items() if of == queue and news.is_unsent
        }
        assert table["ids"] == model.queues[queue].ids
        assert table["merged_into"] == model.queues[queue].merged
        assert table["locks"] == model.occupants(queue)
        assert {holder: entry.partition(" ")[0] for holder, entry in table["follow_ups"].items()} == {
            run.run: run.follower.run for run in runs if run.follower is not None
        }
        for run in runs:
            if run.has_record:
                assert table["jobs"][run.run].rpartition("\n")[2] == f"[{run.data}]", run
            line = table["runs"].get(run.run)
            if line is not None:
                _, claim, *rest = line.split(" ")
                counts = (run.attempt, run.failures, run.stalls, run.snoozes, run.handbacks)
                assert (claim, tuple(map(int, rest[3:8]))) == (run.claim, counts), run

    # --- within ------------------------------------------------------------------------------------------------

    def _tie(self, queue: str, wish: Wish, parents: Sequence[Any], is_repeated: bool) -> None:
        named = checked_parents(parents)
        asked = replace(self._asked(wish), keeps_nothing=False, after=tuple(map(str, named)))
        call = self.ties.enqueue_dependents(queue, [JobWithParents(self._job(asked), named)])
        outcome, holder = self.model.enqueue(queue, asked)
        found = {parent.name: self.model.stands(*_key(parent.ref), parent.ref.id) for parent in named}
        if outcome == "untied" and None in found.values():
            with pytest.raises(JobNotFound):
                self.do(call, is_repeated)
            return
        (made,) = self.do(call, is_repeated)
        if outcome not in ("untied", "made"):
            assert holder is not None
            assert (made.run, made.outcome) == (holder.run, outcome)
            return
        assert made.is_new
        self._made(queue, made.run, made.id)
        child = self.model.make(queue, made.run, made.id, asked, holder)
        if outcome == "untied":
            ties = {parent.name: (run, parent.may_fail) for parent in named if (run := found[parent.name]) is not None}
            self.model.tie(child, ties)

    def _asked(self, wish: Wish) -> Asked:
        id, priority, delay, expiry, lock, max_stalls, keeps_nothing, flags = wish
        self.data += 1
        now = self.model.now
        expires = None if expiry is None else now + expiry
        return Asked(id, priority, now + delay, self.data, lock, expires, max_stalls, keeps_nothing, flags)

    def _job(self, asked: Asked) -> NewJob:
        expiry = "" if asked.expires is None else f"+{asked.expires - self.model.now}"
        options: dict[str, Any] = {"max_stalls": asked.max_stalls, "lock": asked.lock, "after": asked.after}
        if asked.keeps_nothing:
            options["keep"] = Keep(finished=0, failed=0)
        if expiry:
            options["expires_ms"] = int(expiry)
        written = body([asked.data], priority=asked.priority, **options)
        return NewJob(asked.id, asked.priority, str(asked.due), expiry, written, UPDATES.get(asked.flags, IGNORE))

    def _made(self, queue: str, run: str, id: str) -> None:
        assert run > max((name for of, name in self.refs if of == queue), default=""), "runs only grow"
        self.refs[queue, run] = JobRef(queue, id, run)

    def _some_run(self, data: Chance, is_preferred: Callable[[Run], bool]) -> JobRef:
        """Mostly one of those that the call is for; sometimes any that ever was."""
        preferred = [key for key, run in self.model.runs.items() if is_preferred(run)]
        return self.refs[choose(data, [*preferred * 3, *self.refs])]


def _key(ref: JobRef) -> Key:
    assert ref.run is not None
    return ref.queue, ref.run


@pytest.mark.requirement(
    "S2-13",
    "S2-14",
    "S2-15",
    "S2-16",
    "S2-17",
    "S3-1",
    "S3-4",
    "S3-11",
    "S4-8",
    "S4-9",
    "S4-10",
    "S4-11",
    "S4-12",
    "S4-13",
    "S4-26",
    "S4-27",
    "S4-28",
    "S4-29",
    "S4-30",
    "S4-31",
    "Q-9",
)
@pytest.mark.timeout(7_200 if IS_LONG else 600)
def test_ties_do_what_dictionaries_would(bench: Bench) -> None:
    """In any order of calls."""
    run_examples(lambda: TiesMachine(bench), examples=400 if IS_LONG else 25, steps=60 if IS_LONG else 30)


STEPS: Final[Steps[TiesMachine]] = (
    (2, lambda m, rng: m.time_passes(rng.choice([1, 999, 2_000, 5_000]))),
    (1, lambda m, rng: m.leases_run_out(rng.choice(QUEUES))),
    (4, lambda m, rng: m.enqueue(rng.choice(QUEUES), [_wish(rng) for _ in range(rng.randint(1, 3))], rarely(rng))),
    (4, lambda m, rng: m.enqueue_a_known_id(rng, _wish(rng), rarely(rng))),
    (4, lambda m, rng: m.after(rng, rng.choice(QUEUES), _wish(rng), rng.randint(1, 3), rarely(rng))),
    (2, lambda m, rng: m.after_the_same_again(rng, _wish(rng), rarely(rng))),
    (1, lambda m, rng: m.a_producer_dies(rng, rng.choice(QUEUES), _wish(rng), rng.random() < 0.7)),
    (1, lambda m, rng: m.sweep(rng.choice(QUEUES))),
    (2, lambda m, rng: m.cancel_or_delete(rng, rng.choice(["any", "any", "waiting", "delete"]), rarely(rng))),
    (2, lambda m, rng: m.redrive(rng, rarely(rng))),
    (1, lambda m, rng: m.purge(rng.choice(QUEUES), rarely(rng))),
    (6, lambda m, rng: m.claim(rng.choice(QUEUES), rng.choice([0, 1, 1, 2, 4]), rarely(rng))),
    (9, lambda m, rng: m.report(rng, rng.choice(VERBS), rng.choice(DELAYS), rarely(rng))),
    (3, lambda m, rng: m.post(rng.choice(QUEUES), rarely(rng))),
    (1, lambda m, rng: m.a_courier_dies(rng.choice(QUEUES))),
)


@pytest.mark.requirement("Q-9")
@pytest.mark.timeout(7_200 if IS_LONG else 120)
def test_ties_do_what_dictionaries_would_on_long_walks(bench: Bench) -> None:
    """The same machine, walked at random for longer."""

    def begun() -> TiesMachine:
        machine = TiesMachine(bench)
        machine.begin()
        return machine

    def look(machine: TiesMachine, rng: random.Random) -> None:
        machine.all_is_as_the_model_says()
        if rng.random() < 0.04:
            machine.check()

    walk(begun, STEPS, walks=250 if IS_LONG else 15, length=100, look=look)


def _wish(rng: random.Random) -> Wish:
    return (
        rng.choice(IDS),
        rng.choice(PRIORITIES),
        rng.choice(DELAYS) or 0,
        rng.choice([1, 2_000, 6_000]) if rng.random() < 0.2 else None,
        rng.choice(LOCKS),
        rng.choice([3, 3, 0]),
        rng.random() < 0.25,
        rng.choice(FLAGS),
    )
