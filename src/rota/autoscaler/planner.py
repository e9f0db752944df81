"""The planner: observes, decides and acts, in rounds.

Of all planners of a namespace one holds the lease and plans; the others stand by. A round may end at any point: the
next one, of this planner or another, starts from what the store and the provider say. The order of the steps makes
that safe. A launch is stored before the provider is called, and repeated under the same token. A machine is removed
in three steps: its workers drain and report that; it is barred, so that no worker that starts on it takes a job; and
only when the registry, read after that, shows no worker of it alive, the provider terminates it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Final

from msgspec.structs import replace

from rota.autoscaler.config import AutoscalerConfig
from rota.autoscaler.dry_run_responder import DryRunResponder
from rota.autoscaler.machine_provider import Machine, Provider, ProviderError, ProviderThrottled
from rota.autoscaler.pool_observer import PoolObserver
from rota.autoscaler.queue_demand_and_pool_machines import VISIBLE_MS, PoolMachine
from rota.autoscaler.wake_on_first_job import FirstJobWatch
from rota.client.rota import Rota
from rota.client.session import Session, checked_session, session_of
from rota.core.autoscaling.decide_launches_and_drains import Decision, desired
from rota.core.autoscaling.log_lines import launched_line, queue_length_line, scaling_lines, terminated_line
from rota.core.autoscaling.observation import Observation, QueueDemand, WorkerState
from rota.core.autoscaling.policy_settings import DrainTime
from rota.errors import StoreError
from rota.store.autoscaler_lease_decisions_and_demand import (
    PLANNER_LEASE_MS,
    Launch,
    PlannerFenced,
    PlannerInfo,
    ScalingDecision,
    ScalingSettings,
    combine_settings,
)
from rota.store.scaling_dry_run import ScalingDryRun

logger = logging.getLogger("rota.autoscaler")

#: How often the lease is renewed, or tried for.
RENEW_S: Final = 3.0
#: The planner stops acting this long before its lease ends, because a call to the provider takes time.
LEASE_MARGIN_S: Final = 2.0
#: The least time between two rounds that were woken.
LEAST_PAUSE_S: Final = 0.25
#: A decision that changes nothing is kept once in this time.
KEEP_EVERY_MS: Final = 60_000
FENCED: Final = "another planner has taken the lease: this one stands by"


@dataclass(slots=True)
class _Actions:
    """What a round did."""

    launched: list[str] = field(default_factory=list[str])
    drained: list[str] = field(default_factory=list[str])
    terminated: list[str] = field(default_factory=list[str])
    provider_errors: list[str] = field(default_factory=list[str])
    #: There is a next step: another round follows at once.
    goes_on: bool = False


class Planner:
    """One planner, from start to stop."""

    def __init__(self, rota: Rota, provider: Provider, config: AutoscalerConfig) -> None:
        self.id = f"planner-{socket.gethostname().partition('.')[0][:32]}-{os.getpid()}-{secrets.token_hex(3)}"
        self._rota = rota
        self._provider = provider
        self._started_with = config
        #: With the settings changed at run time.
        self.config = config
        self.is_paused = False
        self._observer = PoolObserver(config.queues)
        self._dry_runs = DryRunResponder(self.dry_run)
        #: One round at a time, or one dry run.
        self._observing = asyncio.Lock()
        self._wake_up = asyncio.Event()
        self._stop_requested = asyncio.Event()
        self._first_job = FirstJobWatch(self._wake_up.set)
        self._fence = ""
        #: That of the lease under which the round under way began.
        self._fence_of_round = ""
        #: Until when it may act, by the loop's clock.
        self._held_until = 0.0
        self._standby_for = ""
        #: What the store knows of it, with the settings that it works with.
        self._reported = PlannerInfo()
        self._rounds = 0
        #: Until when the provider is not called, by the loop's clock.
        self._throttled_until = 0.0
        #: In the latest round.
        self._has_provider_failed = False
        self._terminated: set[str] = set()
        self._kept_at = 0
        self._logged: tuple[object, ...] = ()

    @property
    def is_leading(self) -> bool:
        """True while it holds the lease, and will for the next moment."""
        return bool(self._fence) and asyncio.get_running_loop().time() < self._held_until

    def stop(self) -> None:
        """Requests a stop. The round under way ends first."""
        self._stop_requested.set()
        self._wake_up.set()

    async def run(self) -> None:
        """Plans until it is stopped."""
        session = session_of(self._rota)
        loops = (
            self._keep_lease(session),
            self._listen(session),
            self._dry_runs.run(session),
            self._first_job.run(session, lambda: self._observer.demand.names(session)),
        )
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(loop) for loop in loops]
            await self._plan(session)
            for task in tasks:
                task.cancel()
        await self._release(session)

    async def run_once(self) -> bool:
        """Plans one round. False if another planner holds the lease."""
        session = await checked_session(self._rota)
        await self.try_lease(session)
        if not self.is_leading:
            return False
        await self.plan_round(session)
        await self._release(session)
        return True

    # --- loops -------------------------------------------------------------------------------------------------

    async def _plan(self, session: Session) -> None:
        while not self._stop_requested.is_set():
            self._wake_up.clear()
            if self.is_leading:
                await self.plan_round(session)
            else:
                self._has_provider_failed = False
            interval = self.config.policy.interval_ms / 1000
            # After an error of the provider nothing but a stop shortens the interval.
            least = interval if self._has_provider_failed else LEAST_PAUSE_S
            with suppress(TimeoutError):
                async with asyncio.timeout(least):
                    await self._stop_requested.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, interval - least)):
                    await self._wake_up.wait()

    async def _keep_lease(self, session: Session) -> None:
        while True:
            try:
                await self.try_lease(session)
            except StoreError as error:
                logger.debug("the planner lease was not renewed: %s", error)
            await asyncio.sleep(RENEW_S)

    async def try_lease(self, session: Session) -> None:
        """Takes or renews the lease, or finds that another planner has it."""
        sent_at = asyncio.get_running_loop().time()
        self._reported = self._info()
        fence, holder, info = await session.scaling.take_lease(self.id, self._reported)
        if fence:
            self._held_until = sent_at + PLANNER_LEASE_MS / 1000 - LEASE_MARGIN_S
            if fence != self._fence:
                self._fence, self._standby_for = fence, ""
                logger.info("planner %s plans with provider %s", self.id, self._provider.name)
                await self._observer.read_history(session)
                self._wake_up.set()
        else:
            self._fence = ""
            if holder != self._standby_for:
                self._standby_for = holder
                logger.info("planner %s on %s plans: %s stands by", holder, info.host or "another host", self.id)

    async def _listen(self, session: Session) -> None:
        while True:
            try:
                async for message in session.redis.listen(session.keys.inbox(self.id)):
                    if not self._dry_runs.take(message):
                        self._wake_up.set()
            except StoreError as error:
                logger.debug("no notifications: %s", error)
                await asyncio.sleep(RENEW_S)

    async def _release(self, session: Session) -> None:
        if self._fence:
            with suppress(StoreError):
                await session.scaling.release_lease(self._fence)
            self._fence = ""

    def _info(self) -> PlannerInfo:
        policy = self.config.policy
        return PlannerInfo(
            host=socket.gethostname(),
            pid=os.getpid(),
            version=version("rota"),
            provider=self._provider.name,
            queues=list(self.config.queues or ()),
            policy=policy.name,
            min_workers=policy.min_workers,
            max_workers=policy.max_workers,
            target_wait_ms=policy.target_wait_ms if isinstance(policy, DrainTime) else None,
            interval_ms=policy.interval_ms,
            is_dry_run=self.config.is_dry_run,
            is_paused=self.is_paused,
        )

    # --- a round -----------------------------------------------------------------------------------------------

    async def plan_round(self, session: Session) -> None:
        """Observes, decides, acts and records. Errors of store and provider lead to a hold, not to an exception."""
        self._fence_of_round = self._fence
        self._has_provider_failed = False
        try:
            async with self._observing:
                await self._round(session)
        except StoreError as error:
            self._observer.readable_since = None
            held = desired(
                Observation(at_ms=None, store_error=str(error)), self.config.policy, round(time.time() * 1000)
            )
            self._log((held.reasons,), held.reasons)
        except PlannerFenced as error:
            if self._fence == self._fence_of_round:
                self._fence = ""
            logger.warning("%s", error)

    async def _round(self, session: Session) -> None:
        record = await session.scaling.read()
        self.is_paused = bool(record.settings.is_paused)
        self.config = self._started_with.with_settings(record.settings)
        if self._info() != self._reported:
            await self.try_lease(session)
        policy, now = self.config.policy, record.now
        launches = await session.scaling.launches()
        listed, provider_error = await self._list(session, launches, now)
        pool, observation = await self._observer.observe(session, listed, launches, policy, now, provider_error)
        if provider_error is None:
            await self._forget_launches(session, launches, pool)
        decision = desired(observation, policy, now)
        self._log_decision(observation, decision)
        done = _Actions()
        if not self.config.is_dry_run and provider_error is None:
            await self._act(session, decision, pool, now, done)
        if not decision.is_hold:
            self._observer.add_decision(decision.as_past(now))
        self._has_provider_failed = provider_error is not None or bool(done.provider_errors)
        if not self._has_provider_failed:
            # A worker that this round asked to leave takes no more jobs: the next one must not wait for another round.
            capacity = [one for one in pool.values() if one.state in _CAPACITY and one.id not in done.drained]
            self._first_job.set_empty(not capacity and not done.launched)
        await self._record(session, now, observation.queues, decision, pool, done)
        if done.goes_on:
            self._wake_up.set()

    async def dry_run(self, session: Session, settings: ScalingSettings) -> ScalingDryRun:
        """Returns what a round would decide now with these settings, in place of those in force. Changes nothing."""
        async with self._observing:
            record = await session.scaling.read()
            policy = self._started_with.with_settings(combine_settings(record.settings, settings)).policy
            listed, provider_error = await self._list(session, {}, record.now)
            launches = await session.scaling.launches()
            pool, observation = await self._observer.observe(
                session, listed, launches, policy, record.now, provider_error
            )
        decision = desired(observation, policy, record.now)
        entry = _entry(record.now, observation.queues, decision, pool)
        return ScalingDryRun(
            planner=self.id,
            policy=policy.name,
            min_workers=policy.min_workers,
            max_workers=policy.max_workers,
            target_wait_ms=policy.target_wait_ms if isinstance(policy, DrainTime) else None,
            decision=replace(entry, drained=list(decision.drain), drain_count=len(decision.drain), is_dry_run=True),
            launch=decision.launch,
            replace_count=len(decision.replace),
        )

    def _held_fence(self) -> str:
        """The fence of this round. Raises PlannerFenced if the lease was lost since it began, also if it is back."""
        if not self._fence_of_round or self._fence != self._fence_of_round:
            raise PlannerFenced(FENCED)
        return self._fence_of_round

    async def _list(
        self, session: Session, launches: dict[str, Launch], now: int
    ) -> tuple[Sequence[Machine], str | None]:
        """Lists the machines, after unfinished launches were repeated. Returns the provider's error, if any."""
        wait = self._throttled_until - asyncio.get_running_loop().time()
        if wait > 0:
            return [], f"it limits the rate of calls for another {wait:.0f} s"
        try:
            for token in [token for token, launch in launches.items() if launch.machines is None]:
                if self.config.is_dry_run or not self.is_leading:
                    break
                launches[token] = await self._repeat_launch(session, token, launches[token], now)
            listed = await self._provider.machines()
        except ProviderError as error:
            self._on_provider_error(error)
            return [], str(error)
        self._terminated &= {machine.id for machine in listed}
        return listed, None

    async def _repeat_launch(self, session: Session, token: str, launch: Launch, now: int) -> Launch:
        """Repeats a launch whose answer was lost, under the same token, until there is an answer.

        While it is refused nothing else is launched. After a while what it launched is in the list: it is given up.
        """
        self._held_fence()
        try:
            machines = list(await self._provider.launch(launch.count, token))
        except ProviderThrottled:
            raise
        except ProviderError:
            if now - launch.at > VISIBLE_MS:
                await session.scaling.save_launch(self._held_fence(), token, None)
            raise
        launch = Launch(count=launch.count, at=launch.at, machines=machines)
        await session.scaling.save_launch(self._held_fence(), token, launch)
        return launch

    async def _forget_launches(
        self, session: Session, launches: dict[str, Launch], pool: dict[str, PoolMachine]
    ) -> None:
        """Removes launches whose machines have all registered or gone."""
        for token, launch in list(launches.items()):
            machines = [pool[one] for one in launch.machines or () if one in pool]
            if all(machine.has_registered for machine in machines):
                await session.scaling.save_launch(self._held_fence(), token, None)

    # --- acting ------------------------------------------------------------------------------------------------

    async def _act(
        self, session: Session, decision: Decision, pool: dict[str, PoolMachine], now: int, done: _Actions
    ) -> None:
        await self._terminate(session, pool.values(), done)
        if not (decision.is_hold or self.is_paused):
            interrupted = [one for one in pool.values() if one.listed is not None and one.listed.is_interrupted]
            await self._drain(session, [*(pool[one] for one in decision.drain), *interrupted], done)
            for machine_id in decision.replace:
                if not pool[machine_id].is_barred:
                    await self._bar(session, machine_id, done)
            missing = decision.launch - await self._undrain(session, decision.launch, pool.values())
            if missing > 0 and not self._is_throttled:
                await self._launch(session, missing, now, done)
        if not self._is_throttled:
            try:
                await self._provider.protect(sorted(one.id for one in pool.values() if one.listed and one.is_busy))
            except ProviderError as error:
                self._on_provider_error(error, done)

    async def _terminate(self, session: Session, machines: Iterable[PoolMachine], done: _Actions) -> None:
        """Bars the machines whose workers have drained, and terminates those that were barred in an earlier round."""
        for machine in machines:
            if machine.may_be_terminated and machine.listed is not None:
                self._held_fence()
                if not self.is_leading:
                    return
                if self._is_throttled:
                    continue
                try:
                    await self._provider.terminate(machine.id)
                except ProviderError as error:
                    # The others go on: one machine that cannot be removed must not stop the pool.
                    self._on_provider_error(error, done)
                    continue
                if machine.id not in self._terminated:
                    self._terminated.add(machine.id)
                    done.terminated.append(machine.id)
            elif machine.has_drained and not machine.is_barred:
                await self._bar(session, machine.id, done)
        if done.terminated:
            logger.info("%s", terminated_line(done.terminated))

    async def _drain(self, session: Session, machines: Iterable[PoolMachine], done: _Actions) -> None:
        for machine in machines:
            if not machine.has_registered:
                if not machine.is_barred:
                    await self._bar(session, machine.id, done)
                    done.drained.append(machine.id)
                continue
            # Also a worker that is silent: it may be back before it is taken for lost.
            active = [one for one in machine.workers if one.info.get("state") not in ("draining", "drained", "stopped")]
            for worker in active:
                self._check(await session.store.drain_worker(worker.id, fence=self._held_fence()))
            if active:
                done.drained.append(machine.id)

    async def _undrain(self, session: Session, wanted: int, machines: Iterable[PoolMachine]) -> int:
        """Takes back drains of planners before new machines are launched. Returns how many machines stay."""
        if wanted <= 0 or not (asked := await session.scaling.drained_by()):
            return 0
        kept = 0
        for machine in machines:
            is_lost = machine.is_barred or machine.listed is None or machine.listed.is_interrupted
            if kept == wanted or is_lost or machine.state is not WorkerState.DRAINING or not machine.alive:
                continue
            if any(asked.get(worker.id) == "operator" for worker in machine.alive):
                continue
            outcomes = [await session.store.undrain_worker(one.id, fence=self._held_fence()) for one in machine.alive]
            for outcome in outcomes:
                self._check(outcome)
            if "active" in outcomes:
                kept += 1
                logger.info("machine %s stays: it is needed again", machine.id)
        return kept

    async def _bar(self, session: Session, machine_id: str, done: _Actions) -> None:
        await session.scaling.bar_machine(self._held_fence(), machine_id)
        done.goes_on = True

    async def _launch(self, session: Session, count: int, now: int, done: _Actions) -> None:
        token = secrets.token_hex(6)
        await session.scaling.save_launch(self._held_fence(), token, Launch(count=count, at=now))
        if not self.is_leading:
            return
        self._held_fence()
        try:
            machines = list(await self._provider.launch(count, token))
        except ProviderError as error:
            self._on_provider_error(error, done)
            return
        await session.scaling.save_launch(self._held_fence(), token, Launch(count=count, at=now, machines=machines))
        done.launched += machines
        if machines:
            logger.info("%s", launched_line(machines))
        else:
            logger.info("requested %d machines, which the platform lists later", count)
        if 0 < len(machines) < count:
            logger.warning("only %d of %d machines were launched", len(machines), count)

    @staticmethod
    def _check(outcome: str) -> None:
        if outcome == "fenced":
            raise PlannerFenced(FENCED)

    @property
    def _is_throttled(self) -> bool:
        return asyncio.get_running_loop().time() < self._throttled_until

    def _on_provider_error(self, error: ProviderError, done: _Actions | None = None) -> None:
        if isinstance(error, ProviderThrottled):
            self._throttled_until = asyncio.get_running_loop().time() + error.retry_after
        if done is not None:
            done.provider_errors.append(str(error))
        logger.warning("provider %s: %s", self._provider.name, error)

    # --- reporting ---------------------------------------------------------------------------------------------

    def _log_decision(self, observation: Observation, decision: Decision) -> None:
        logger.info("%s", queue_length_line(observation))
        for line in (*decision.reasons, *scaling_lines(decision)):
            logger.info("%s", line)
        if self.config.is_dry_run or self.is_paused:
            logger.info("nothing is done: the autoscaler %s", "is paused" if self.is_paused else "makes a dry run")

    def _log(self, key: tuple[object, ...], lines: Iterable[str]) -> None:
        """Logs a problem that lasts only once."""
        if key != self._logged:
            self._logged = key
            for line in lines:
                logger.warning("%s", line)

    async def _record(
        self,
        session: Session,
        now: int,
        demand: Sequence[QueueDemand],
        decision: Decision,
        pool: dict[str, PoolMachine],
        done: _Actions,
    ) -> None:
        self._logged = ()
        observed = _entry(now, demand, decision, pool)
        entry = replace(
            observed,
            booting=observed.booting + len(done.launched),
            reasons=[*decision.reasons, *(f"The provider failed: {error}." for error in done.provider_errors[:1])],
            launched=done.launched,
            drained=done.drained,
            terminated=done.terminated,
            launch_count=len(done.launched),
            drain_count=len(done.drained),
            is_dry_run=self.config.is_dry_run,
            is_paused=self.is_paused,
        )
        is_kept = bool(done.launched or done.drained or done.terminated) or now - self._kept_at >= KEEP_EVERY_MS
        self._rounds += 1
        await session.scaling.record(self._held_fence(), self._rounds, entry, is_kept=is_kept)
        if is_kept:
            self._kept_at = now


_CAPACITY: Final = (WorkerState.BOOTING, WorkerState.RUNNING)


def _entry(
    now: int, demand: Sequence[QueueDemand], decision: Decision, pool: dict[str, PoolMachine]
) -> ScalingDecision:
    """What was observed and decided, before anything is done."""
    states = [machine.state for machine in pool.values()]
    waits = [queue.oldest_wait_ms for queue in demand if queue.oldest_wait_ms is not None]
    return ScalingDecision(
        at=now,
        wanted=decision.count,
        needed=decision.needed,
        running=states.count(WorkerState.RUNNING),
        booting=states.count(WorkerState.BOOTING),
        draining=states.count(WorkerState.DRAINING),
        high=sum(queue.high for queue in demand),
        normal=sum(queue.normal for queue in demand),
        oldest_wait_ms=max(waits, default=None),
        reasons=list(decision.reasons),
        is_hold=decision.is_hold,
    )
