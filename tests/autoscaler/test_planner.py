"""Planning rounds on a real store, against a cloud with faults."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

import pytest

from rota import InvalidOption, Rota
from rota.autoscaler.machine_provider import Machine, ProviderError, ProviderThrottled
from rota.autoscaler.planner import LEAST_PAUSE_S
from rota.autoscaler.queue_demand_and_pool_machines import TURNS, VISIBLE_MS, DemandReader, PoolMachine
from rota.client.events import BLOCK_MS, NO_QUEUE_POLL_S
from rota.client.session import checked_session, session_of
from rota.core.autoscaling.policy_settings import DrainTime, Thresholds
from rota.store.autoscaler_lease_decisions_and_demand import Launch, PlannerFenced
from rota.store.reads import WorkerInfo
from tests.autoscaler.cloud import Cloud, Killed, throttled
from tests.autoscaler.conftest import PLAIN, Pool
from tests.eventually import eventually
from tests.servers import OwnServers

# --- launching -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S2-24")
async def test_waiting_jobs_launch_workers_and_the_log_says_so(pool: Pool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="rota.autoscaler")
    await pool.rota.enqueue(pool.task.using(priority="high").call())
    await pool.enqueue(2)

    await pool.round()

    assert pool.cloud.made("launch") == [3]
    lines = [record.getMessage() for record in caplog.records]
    assert "Queue Length: 3 (High Priority: 1, Normal: 2)" in lines
    assert "Scaling up by 3 instances..." in lines
    assert "Launched instances: i-1, i-2, i-3" in lines


async def test_machines_that_boot_count_also_when_the_list_lacks_them(pool: Pool) -> None:
    pool.cloud.lag = 3
    await pool.enqueue(3)

    await pool.rounds(5)

    assert pool.cloud.made("launch") == [3]


async def test_a_second_planner_knows_of_machines_that_the_list_lacks(pool: Pool) -> None:
    pool.cloud.lag = 3
    await pool.enqueue(3)
    await pool.planner.run_once()

    await pool.new_planner().run_once()

    assert pool.cloud.made("launch") == [3]


async def test_what_the_platform_could_not_launch_is_requested_again(pool: Pool) -> None:
    pool.cloud.capacity = 1
    await pool.enqueue(3)
    await pool.round()
    pool.cloud.capacity = 10

    await pool.round()

    assert pool.cloud.made("launch") == [3, 2]
    assert len(pool.cloud.existing) == 3


@pytest.mark.parametrize("fault", [ProviderError("no answer"), Killed()], ids=["lost", "killed"])
async def test_a_launch_whose_answer_got_lost_launches_nothing_twice(pool: Pool, fault: BaseException) -> None:
    pool.cloud.fails_after["launch"] = fault
    await pool.enqueue(3)
    try:
        await pool.planner.run_once()
    except Killed:
        await session_of(pool.rota).redis.command("HDEL", session_of(pool.rota).keys.shared("planner"), "holder")

    pool.new_planner()
    await pool.rounds(2)

    assert len(pool.cloud.existing) == 3
    assert len(pool.cloud.by_token) == 1


@pytest.mark.parametrize("fault", [ProviderError("no answer"), ProviderThrottled("slow down", retry_after=0.0)])
async def test_a_launch_that_fails_again_is_repeated_under_its_token(pool: Pool, fault: ProviderError) -> None:
    pool.cloud.fails_after["launch"] = ProviderError("no answer")
    pool.cloud.lag = 5
    await pool.enqueue(3)
    await pool.round()
    pool.cloud.fails["launch"] = fault
    await pool.round()
    assert len(await session_of(pool.rota).scaling.launches()) == 1

    await pool.rounds(2)

    assert list(pool.cloud.by_token.values()) == [["i-1", "i-2", "i-3"]], "nothing was launched twice"


async def test_a_launch_that_is_refused_for_long_is_given_up(pool: Pool) -> None:
    session = session_of(pool.rota)
    await pool.round()
    at = (await session.scaling.read()).now - VISIBLE_MS - 1_000
    await session.scaling.save_launch(pool.planner._fence, "token", Launch(count=1, at=at))
    pool.cloud.fails["launch"] = ProviderError("the token is not valid any more")

    await pool.round()

    assert await session.scaling.launches() == {}


async def test_a_machine_that_never_registers_is_replaced(pool: Pool) -> None:
    await pool.enqueue(1)
    await pool.planner.run_once()
    pool.new_planner(DrainTime(boot_ms=0, boot_timeout_ms=0, down_cooldown_ms=0, max_workers=1))

    await pool.planner.run_once()
    await pool.planner.run_once()

    assert pool.cloud.made("terminate") == ["i-1"]
    assert "i-2" in pool.cloud.existing


async def test_a_worker_that_registers_after_its_machine_was_given_up_takes_no_job(pool: Pool) -> None:
    await pool.enqueue(1)
    await pool.planner.run_once()
    late = DrainTime(boot_ms=0, boot_timeout_ms=0, down_cooldown_ms=0, max_workers=1)
    await pool.new_planner(late).run_once()

    assert "drain" in await pool.register("i-1")
    pool.new_planner()
    await pool.rounds(2)
    assert pool.cloud.made("terminate") == [], "it is alive"

    assert await pool.report_drained("i-1")
    await pool.rounds(1)
    assert pool.cloud.made("terminate") == ["i-1"]


# --- scaling down --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S2-26")
async def test_a_machine_is_terminated_only_when_its_worker_has_drained(pool: Pool) -> None:
    (machine,) = await pool.start(1)
    await pool.purge()
    await pool.round()
    assert "drain" in await pool.register(machine, busy=1, state="draining")

    await pool.rounds(3)
    assert pool.cloud.made("terminate") == []

    assert await pool.report_drained(machine)
    await pool.rounds(2)
    assert pool.cloud.made("terminate") == [machine]
    assert pool.cloud.existing == {}


async def test_a_busy_machine_is_seen_among_thousands_of_workers(pool: Pool) -> None:
    pool.new_planner(DrainTime(boot_ms=0, boot_timeout_ms=0, down_cooldown_ms=0, max_workers=1))
    (machine,) = await pool.start(1)
    await pool.register(machine, busy=1, state="active")
    session = session_of(pool.rota)
    now = (await session.scaling.read()).now
    others = [f"other-{number}" for number in range(2_500)]
    # They registered later than the pool's worker; ten in each ms.
    pairs = [word for index, name in enumerate(others) for word in (now + 1 + index // 10, name)]
    await session.redis.command("ZADD", session.keys.shared("worker_seen"), *pairs)

    assert {one.id for one in await session.views.all_workers()} == {f"w-{machine}", *others}
    await pool.rounds(2)

    assert pool.cloud.made("terminate") == []
    assert pool.cloud.made("launch") == [1], "the one it began with"


async def test_idle_workers_leave_first(pool: Pool) -> None:
    first, second = await pool.start(2)
    await pool.register(first, busy=1, state="active")
    await pool.purge()
    await pool.enqueue(1)
    await pool.round()

    assert "drain" not in await pool.register(first, busy=1, state="active")
    assert "drain" in await pool.register(second)
    assert pool.cloud.protected == {first}


@pytest.mark.parametrize("busy", [0, 1])
async def test_a_machine_whose_worker_is_silent_is_terminated_only_when_the_worker_is_lost(
    pool: Pool, busy: int
) -> None:
    (machine,) = await pool.start(1)
    await pool.register(machine, busy=busy, state="active")
    pool.cloud.existing[machine] = Machine(id=machine, state="failed")
    await pool.round()
    await pool.silence(machine, 30_000)
    await pool.rounds(2)
    assert pool.cloud.made("terminate") == [], "it is silent for less than lost_ms"
    assert machine in pool.cloud.protected

    await pool.silence(machine, 90_000)
    await pool.rounds(2)
    assert pool.cloud.made("terminate") == [], "the store could not be read for so long"

    assert pool.planner._observer.readable_since is not None
    pool.planner._observer.readable_since -= 90_000
    await pool.round()
    assert pool.cloud.made("terminate") == [machine]
    assert machine not in pool.cloud.protected


def test_a_machine_has_not_drained_while_another_worker_of_it_is_silent() -> None:
    machine = PoolMachine(id="i-1", is_barred=True, lost_before=1_000)
    drained = WorkerInfo("a", "DEAD", 2_000, 30_000, {"state": "drained"})
    machine.workers = [drained, WorkerInfo("b", "DEAD", 1_500, 30_500, {"state": "active"})]
    assert not machine.has_drained
    assert not machine.may_be_terminated
    assert machine.is_busy

    machine.lost_before = 1_600
    assert machine.has_drained
    assert machine.may_be_terminated
    assert not machine.is_busy


async def test_busy_machines_are_protected_also_while_the_autoscaler_is_paused(pool: Pool) -> None:
    first, second = await pool.start(2)
    await pool.rota.scaling.pause()
    await pool.register(first, busy=1, state="active")

    await pool.round()
    assert pool.cloud.protected == {first}

    await pool.silence(second, 30_000)
    await pool.round()
    assert pool.cloud.protected == {first, second}


async def test_a_machine_that_cannot_be_terminated_does_not_stop_the_others(pool: Pool) -> None:
    first, second, third = await pool.start(3)
    await pool.purge()
    await pool.round()
    for machine in (first, second):
        await pool.report_drained(machine)
    await pool.register(third, busy=1, state="draining")
    await pool.round()
    await pool.enqueue(3)
    pool.cloud.fails["terminate"] = ProviderError("it is locked")

    await pool.round()

    assert pool.cloud.made("terminate") == [second]
    assert pool.cloud.made("launch") == [3, 2]
    assert pool.cloud.protected == {third}
    latest = (await pool.rota.scaling.status()).latest
    assert latest is not None
    assert "The provider failed: it is locked." in latest.reasons

    await pool.round()
    assert pool.cloud.made("terminate") == [second, first]


async def test_a_machine_that_is_barred_already_wakes_no_further_round(pool: Pool) -> None:
    (machine,) = await pool.start(1)
    pool.cloud.existing[machine] = Machine(id=machine, state="failed")
    await pool.round()
    woken = pool.planner._wake_up
    assert woken.is_set(), "the next step follows at once"

    woken.clear()
    await pool.rounds(2)

    assert not woken.is_set(), "its worker is alive: there is nothing to do yet"


@pytest.mark.parametrize("verb", ["terminate", "machines"])
async def test_a_planner_that_dies_after_the_drain_leaves_the_rest_to_the_next_one(pool: Pool, verb: str) -> None:
    (machine,) = await pool.start(1)
    await pool.purge()
    await pool.round()
    await pool.report_drained(machine)
    pool.cloud.fails[verb] = Killed()
    with pytest.raises(Killed):
        await pool.rounds(2)

    session = session_of(pool.rota)
    await session.redis.command("HDEL", session.keys.shared("planner"), "holder")
    pool.new_planner()
    await pool.rounds(2)

    assert pool.cloud.made("terminate") == [machine]


async def test_a_worker_that_is_needed_again_stays(pool: Pool) -> None:
    machines = await pool.start(2)
    await pool.purge()
    await pool.round()
    for machine in machines:
        assert "drain" in await pool.register(machine, busy=1, state="draining")

    await pool.enqueue(2)
    await pool.round()

    assert [await pool.register(machine, busy=1) for machine in machines] == [frozenset()] * 2
    assert pool.cloud.made("launch") == [2], "the two it began with"


async def test_a_worker_that_an_operator_drains_is_replaced_and_not_kept(pool: Pool) -> None:
    (machine,) = await pool.start(1)
    await pool.rota.drain(f"w-{machine}")

    await pool.round()

    assert "drain" in await pool.register(machine, state="draining")
    assert pool.cloud.made("launch") == [1, 1]


async def test_a_machine_that_the_platform_takes_back_is_drained_and_replaced(pool: Pool) -> None:
    (machine,) = await pool.start(1)
    pool.cloud.existing[machine] = Machine(id=machine, is_interrupted=True)

    await pool.round()

    assert "drain" in await pool.register(machine)
    assert pool.cloud.made("launch") == [1, 1]


# --- holding -------------------------------------------------------------------------------------------------------


async def test_a_platform_that_limits_calls_is_left_alone(pool: Pool) -> None:
    await pool.start(2)
    await pool.purge()
    pool.cloud.fails["machines"] = throttled()
    pool.cloud.calls.clear()

    await pool.rounds(3)

    assert pool.cloud.calls == []
    latest = (await pool.rota.scaling.status()).latest
    assert latest is not None
    assert latest.is_hold
    assert "limits the rate" in latest.reasons[0]


async def test_without_a_list_the_pool_is_not_taken_for_empty(pool: Pool) -> None:
    await pool.start(1)
    await pool.round()
    pool.cloud.fails["machines"] = ProviderError("no route to host")

    await pool.round()

    assert not pool.planner._first_job._is_empty.is_set()


@pytest.mark.parametrize("verb", ["machines", "launch"])
async def test_after_an_error_of_the_provider_events_wake_no_round(pool: Pool, verb: str) -> None:
    planner = pool.new_planner(DrainTime(boot_ms=0, interval_ms=600_000, stale_ms=600_000, max_workers=3))
    await pool.enqueue(1)
    pool.cloud.fails[verb] = ProviderError("no capacity")

    async with asyncio.TaskGroup() as group:
        running = group.create_task(planner.run())
        await eventually(lambda: planner._has_provider_failed)
        before = len(pool.cloud.calls)
        for _ in range(3):
            planner._wake_up.set()
            await asyncio.sleep(2 * LEAST_PAUSE_S)
        assert len(pool.cloud.calls) == before
        planner.stop()
        await asyncio.wait_for(running, 5)


async def test_without_a_list_of_machines_no_worker_leaves(pool: Pool) -> None:
    machines = await pool.start(2)
    await pool.purge()
    pool.cloud.fails["machines"] = ProviderError("no route to host")

    await pool.round()

    assert [await pool.register(machine) for machine in machines] == [frozenset()] * 2


async def test_while_the_store_is_away_nothing_changes(own_server: OwnServers, namespace: str) -> None:
    server = own_server()
    async with Rota(server.url, namespace=namespace, patience=0.2) as rota:
        pool = Pool(rota, Cloud())
        machines = await pool.start(2)
        session = session_of(rota)
        pool.cloud.calls.clear()
        server.kill()

        for _ in range(3):
            await pool.planner.plan_round(session)

        assert pool.cloud.made("terminate") + pool.cloud.made("launch") == []
        assert sorted(pool.cloud.existing) == sorted(machines)


# --- the lease -----------------------------------------------------------------------------------------------------


async def test_a_second_planner_stands_by_and_says_so(pool: Pool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="rota.autoscaler")
    await pool.enqueue(1)
    first = pool.planner
    await pool.round(first)
    second = pool.new_planner()

    assert not await second.run_once()

    assert f"planner {first.id} on " in caplog.text
    assert f"{second.id} stands by" in caplog.text
    assert (await pool.rota.scaling.status()).planner == first.id
    assert pool.cloud.made("launch") == [1]


async def test_every_write_of_a_planner_that_lost_its_lease_is_refused(pool: Pool) -> None:
    (machine,) = await pool.start(1)
    await pool.purge()
    session = session_of(pool.rota)
    old = pool.planner
    await session.redis.command("HDEL", session.keys.shared("planner"), "holder")
    await pool.round(pool.new_planner(DrainTime(min_workers=1)))
    before = (await pool.rota.scaling.status()).latest

    await old.plan_round(session)

    assert not old.is_leading
    assert await pool.register(machine) == frozenset(), "not marked as draining"
    assert (await pool.rota.scaling.status()).latest == before
    with pytest.raises(PlannerFenced):
        await session.scaling.bar_machine("1", machine)
    with pytest.raises(PlannerFenced):
        await session.scaling.save_launch("1", "token", None)
    assert await session.store.undrain_worker(f"w-{machine}", fence="1") == "fenced"


@pytest.mark.parametrize("is_back", [False, True], ids=["lost", "lost and back"])
async def test_a_planner_that_loses_its_lease_in_a_round_drains_nothing(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, is_back: bool
) -> None:
    (machine,) = await pool.start(1)
    await pool.purge()
    session = session_of(pool.rota)
    old, other, list_machines = pool.planner, pool.new_planner(), pool.cloud.machines

    async def lose_the_lease() -> Sequence[Machine]:
        listed = await list_machines()
        for planner in (other, old) if is_back else (other,):
            await session.redis.command("HDEL", session.keys.shared("planner"), "holder")
            await planner.try_lease(session)
        await old.try_lease(session)
        return listed

    monkeypatch.setattr(pool.cloud, "machines", lose_the_lease)
    await old.plan_round(session)

    assert await session.scaling.drained_by() == {}
    assert await pool.register(machine) == frozenset()
    assert old.is_leading == is_back


# --- settings and history ------------------------------------------------------------------------------------------


async def test_settings_change_at_run_time(pool: Pool) -> None:
    await pool.enqueue(4)
    await pool.rota.scaling.pause()
    await pool.round()
    assert pool.cloud.made("launch") == []

    await pool.rota.scaling.change(is_paused=None, is_dry_run=True)
    await pool.round()
    assert pool.cloud.made("launch") == []

    await pool.rota.scaling.change(is_dry_run=None, max_workers=2)
    await pool.round()
    assert pool.cloud.made("launch") == [2]

    with pytest.raises(InvalidOption):
        await pool.rota.scaling.change(min_workers=3)
    with pytest.raises(InvalidOption):
        await pool.rota.scaling.change(max_worker=3)
    settings = await pool.rota.scaling.change(policy="thresholds", max_workers=None, min_workers=3)
    assert (settings.policy, settings.min_workers, settings.max_workers) == ("thresholds", 3, None)
    await pool.round()
    assert isinstance(pool.planner.config.policy, Thresholds)


async def test_decisions_are_kept_with_their_reasons_and_read_by_page(pool: Pool) -> None:
    (machine,) = await pool.start(1)
    await pool.purge()
    await pool.round()
    await pool.report_drained(machine)
    await pool.rounds(2)

    first = await pool.rota.scaling.decisions(limit=1)
    rest = await pool.rota.scaling.decisions(cursor=first.cursor, limit=10)

    assert [one.terminated for one in first.decisions] == [[machine]]
    assert [one.drained or one.launched for one in rest.decisions] == [[machine], [machine]]
    assert rest.decisions[-1].reasons
    assert (rest.decisions[-1].wanted, rest.decisions[-1].normal) == (1, 1)
    assert rest.cursor is None


async def test_what_falls_due_soon_is_demand(pool: Pool) -> None:
    await pool.rota.enqueue(pool.task.using(delay=30).call())
    await pool.rota.enqueue(pool.task.using(delay=600).call())
    await pool.round(pool.new_planner(DrainTime(boot_ms=60_000, max_workers=5)))

    assert pool.cloud.made("launch") == [1]


@pytest.mark.parametrize("queues", [("default",), None], ids=["named", "all"])
async def test_jobs_of_failure_handlers_are_demand(pool: Pool, queues: tuple[str, ...] | None) -> None:
    await pool.enqueue(1)
    await pool.purge()
    session = session_of(pool.rota)
    now = (await session.scaling.read()).now
    await session.redis.command("ZADD", session.keys.queue("default-fail", "pending"), now, "a-failure-job")

    demand = DemandReader(queues)

    assert await demand.names(session) == ["default", "default-fail"], "the watch for the first job reads these, too"
    assert {one.queue: one.normal for one in await demand.read(session, 0, now)} == {"default-fail": 1}
    await pool.round()
    assert pool.cloud.made("launch") == [1]


async def test_queues_at_rest_are_only_asked_if_they_have_work(pool: Pool) -> None:
    """Of 10,000 queues a round reads those with work, those that had some lately, and a sixtieth of the others."""
    session = await checked_session(pool.rota)
    queues = [f"q{number}" for number in range(25)]
    await pool.rota.enqueue_many(pool.task.using(queue=queue).call() for queue in queues)
    for queue in queues:
        await pool.rota.queue(queue).purge()
    await pool.task.using(queue="q7").enqueue()
    await pool.task.using(queue="q8", delay=30).enqueue()

    assert await session.scaling.queues_with_work(queues) == {"q7", "q8"}

    demand = DemandReader(tuple(queues))
    now = await session.views.now()
    assert {one.queue for one in await demand.read(session, 60_000, now)} == {"q7", "q8"}
    await pool.rota.queue("q7").purge()
    assert {one.queue for one in await demand.read(session, 60_000, now)} == {"q7", "q8"}, "its rates still count"
    assert await session.scaling.queues_with_work(queues) == {"q8"}


async def test_a_queue_whose_jobs_no_round_meets_is_found_when_it_is_its_turn(pool: Pool) -> None:
    session = await checked_session(pool.rota)
    demand = DemandReader(("default",))
    now = await session.views.now()
    for _ in range(TURNS):
        assert await demand.read(session, 0, now) == []

    await pool.enqueue(3)
    await pool.purge()

    found = [one for _ in range(TURNS) for one in await demand.read(session, 0, now)]
    assert {one.queue for one in found} == {"default"}


async def test_the_failure_queues_of_shards_are_demand(pool: Pool) -> None:
    pool.rota.queue("mail", shards=2)
    session = session_of(pool.rota)

    names = await DemandReader(("mail", "mail-fail")).names(session)

    assert names == ["mail~1of2", "mail~1of2-fail", "mail~2of2", "mail~2of2-fail"]


@pytest.mark.requirement("S2-24")
@pytest.mark.timeout(90)
async def test_the_first_job_of_an_empty_pool_requests_a_worker_at_once(pool: Pool) -> None:
    """Within 1 s: nothing on the way waits longer than the event stream does for its next read. Prints what it took."""
    # With this interval, only a push can be the reason for another round.
    pool.new_planner(replace(PLAIN, interval_ms=3_600_000, stale_ms=7_200_000))
    planning = asyncio.create_task(pool.planner.run())
    # After that of the start, one when it listens to the queues.
    await eventually(lambda: pool.planner._rounds >= 2)
    loop = asyncio.get_running_loop()

    began = loop.time()
    await pool.enqueue(1)
    await eventually(lambda: bool(pool.cloud.made("launch")))
    took_ms = (loop.time() - began) * 1000

    assert pool.cloud.made("launch") == [1]
    assert max(NO_QUEUE_POLL_S, BLOCK_MS / 1000) <= 0.5, "the longest pause between a job and the round for it"
    print(f"from the first job to the request of a worker: {took_ms:.0f} ms")
    pool.planner.stop()
    await planning


@pytest.mark.requirement("S2-24")
@pytest.mark.timeout(90)
async def test_a_job_that_comes_after_the_last_worker_was_asked_to_leave_is_noticed_at_once(pool: Pool) -> None:
    # With this interval, only a push can be the reason for another round.
    pool.new_planner(replace(PLAIN, interval_ms=3_600_000, stale_ms=7_200_000))
    await pool.start(1)
    session = await checked_session(pool.rota)

    async def asked_to_leave() -> bool:
        return bool(await session.scaling.drained_by())

    async def stays() -> bool:
        return not await asked_to_leave()

    planning = asyncio.create_task(pool.planner.run())
    # After that of the start, one at its beginning and one when it listens to notifications.
    await eventually(lambda: pool.planner._rounds == 3)
    await pool.purge()
    await pool.rota.scaling.change(max_workers=2)  # one more round, which finds nothing to do for the worker
    await eventually(asked_to_leave)
    await pool.enqueue(1)
    await eventually(stays)
    pool.planner.stop()
    await planning
