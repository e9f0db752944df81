"""What the state machines share: a clock that stands still, calls that may be sent twice, examples and walks."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeVar, cast

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from rota.core.job_options import Keep
from rota.core.state_transitions import JobState
from rota.store.claim_replies import ClaimedJob
from rota.store.job_store import JobStore
from rota.store.keys import Keys
from rota.store.redis.retrying_client import Argument, RedisClient, ScriptCall
from tests.leaks import delete_keys
from tests.scale import random_seed
from tests.store.driver import Driver

T = TypeVar("T")
#: A clock that stands still until it is moved, so that a model can be exact to the millisecond.
FROZEN: Final = "tests:frozen"
EPOCH_MS: Final = 2_000_000_000_000  # ahead of every clock: what the server itself expires stays
Chance = st.DataObject | random.Random


class Repeating(RedisClient):
    """Sends every script twice when asked to, as if the first answer had been lost."""

    repeats = False

    async def run(self, name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        return await self._maybe_twice(partial(super().run, name, keys, arguments))

    async def run_many(self, calls: Sequence[ScriptCall]) -> list[Any]:
        return await self._maybe_twice(partial(super().run_many, calls))

    async def _maybe_twice(self, send: Callable[[], Awaitable[T]]) -> T:
        first = await send()
        if self.repeats:
            await send()
        return first


class Bench(NamedTuple):
    """What machines share, one after the other: connections, and the loop that they live on."""

    driver: Driver
    redis_client: Repeating
    loop: asyncio.AbstractEventLoop


class Clocked(Protocol):
    """A model, as far as the frame knows it."""

    now: int


class Modelled(Protocol):
    """A run of a model, as far as the frame knows it."""

    state: str
    claim: str
    keeps_nothing: bool


class Machine(RuleBasedStateMachine):
    """A store in a namespace of its own, and the model that it is compared with."""

    all_queues: Sequence[str]

    def __init__(self, bench: Bench, clock: Clocked) -> None:
        super().__init__()
        self.driver, self.redis_client, self._loop = bench
        self.driver.keys = Keys(f"p{secrets.token_hex(5)}")
        self._clock = clock
        self._stores: dict[str, JobStore] = {}
        #: every claim ever made: what the late ones say must change nothing
        self.claimed: list[ClaimedJob] = []
        self.pass_time(0)

    def find(self, queue: str, run: str) -> Modelled | None:
        """A run of the model."""
        raise NotImplementedError

    def pass_time(self, ms: int) -> None:
        self._clock.now += ms
        self.driver.redis.set(FROZEN, self._clock.now, px=600_000)

    def store(self, participant: str) -> JobStore:
        """The participant of that name, always the same one."""
        if participant not in self._stores:
            self._stores[participant] = JobStore(self.redis_client, self.driver.keys, participant)
        return self._stores[participant]

    def do(self, call: Coroutine[Any, Any, T], is_repeated: bool = False) -> T:
        self.redis_client.repeats = is_repeated
        return self._loop.run_until_complete(call)

    def owns(self, job: ClaimedJob) -> bool:
        run = self.find(job.queue, job.run)
        return run is not None and run.state == "processing" and run.claim == job.claim

    def some_claim(self, data: Chance) -> ClaimedJob:
        """Mostly one that owns its run; sometimes one that lost it."""
        owning = [job for job in self.claimed if self.owns(job)]
        return choose(data, [*owning * 4, *self.claimed])

    def rule_of(self, job: ClaimedJob, state: JobState) -> str:
        run = self.find(job.queue, job.run)
        keep = Keep(finished=0, failed=0) if run is not None and run.keeps_nothing else Keep()
        return keep.retention(state)

    def check(self) -> None:
        for queue in self.all_queues:
            self.driver.check(queue=queue)

    def teardown(self) -> None:
        try:
            self.check()
        finally:
            delete_keys(self.driver.redis, self.driver.keys.namespace)


M = TypeVar("M", bound=Machine)
#: What a walk may do next, and how often.
Steps = Sequence[tuple[int, Callable[[M, random.Random], None]]]


def choose(data: Chance, options: Sequence[T]) -> T:
    return data.choice(options) if isinstance(data, random.Random) else data.draw(st.sampled_from(options))


def rarely(rng: random.Random) -> bool:
    return rng.random() < 0.3


def run_examples(new_machine: Callable[[], M], *, examples: int, steps: int) -> None:
    """Histories that Hypothesis makes up, and makes short when one fails."""
    run_state_machine_as_test(
        cast("type[M]", new_machine),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
        ),
    )


def walk(
    new_machine: Callable[[], M], steps: Steps[M], *, walks: int, length: int, look: Callable[[M, random.Random], None]
) -> None:
    """Rarer and longer histories than those of `run_examples`. `look` compares after every step.

    What fails can be walked again by its seed, and made short by hand.
    """
    seed = random_seed()
    weights = [weight for weight, _ in steps]
    for number in range(walks):
        rng = random.Random(f"{seed}-{number}")
        machine = new_machine()
        try:
            for _, step in rng.choices(steps, weights, k=length):
                step(machine, rng)
                look(machine, rng)
            machine.teardown()
        except Exception as error:
            error.add_note(f"walk it again with ROTA_TEST_SEED={seed}; it was walk {number}")
            raise
