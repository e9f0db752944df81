"""`rota.prometheus`: what a scrape says of the store."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from rota import Every, Job, Rota
from rota.core.state_transitions import JobState
from rota.monitoring.prometheus import metrics_text
from rota.store.report_encoding import Completed, Lost
from tests.client.manual_worker import Hand, move_to
from tests.servers import OwnServers, Server
from tests.telemetry.scrape import Scrape


@pytest.fixture
async def rota(server: Server, namespace: str) -> AsyncIterator[Rota]:
    rota = Rota(server.url, namespace=namespace)
    yield rota
    await rota.close()


@pytest.fixture
async def hand(rota: Rota) -> AsyncIterator[Hand]:
    hand = Hand(rota)
    yield hand
    await hand.close()


@pytest.fixture
def send(rota: Rota) -> Any:
    @rota.task(queue="mail")
    async def send(to: str = "") -> None: ...

    return send


async def finish(hand: Hand, job: Job[Any]) -> None:
    """Completes a job as a worker does, which says whose it was."""
    claimed = await hand.take(job)
    await hand.store.report(job.queue, [Completed(claimed.run, claimed.claim, "60000:10 send", b"")])


async def scrape(rota: Rota) -> Scrape:
    return Scrape(await metrics_text(rota))


async def test_a_scrape_says_how_many_jobs_are_in_each_state_and_how_each_ended(
    rota: Rota, hand: Hand, send: Any
) -> None:
    await finish(hand, await send.enqueue())
    for state in (JobState.FAILED, JobState.CANCELLED, JobState.SCHEDULED, JobState.PROCESSING):
        await move_to(await send.enqueue(), state, hand)
    await send.enqueue()

    seen = await scrape(rota)

    for state in JobState:
        assert seen("rota_queue_jobs", queue="mail", state=state.value) == (0 if state is JobState.BLOCKED else 1)
    assert seen("rota_jobs_enqueued_total", queue="mail", task="send") == 6
    assert seen("rota_attempts_total", queue="mail", task="send") == 4
    for outcome in ("completed", "failed", "cancelled"):
        assert seen("rota_jobs_total", queue="mail", task="send", outcome=outcome) == 1
    assert seen("rota_retries_total", queue="mail", task="send") == 1
    assert seen("rota_redriven_total", queue="mail") == seen("rota_deleted_total", queue="mail") == 0
    assert seen("rota_queue_oldest_age_seconds", queue="mail") >= 0
    assert seen("rota_queue_paused", queue="mail") == 0


async def test_a_scrape_counts_workers_that_vanished_and_the_attempts_they_had(
    rota: Rota, hand: Hand, send: Any
) -> None:
    await send.enqueue()
    (claimed,) = await hand.claim(queue="mail")

    await hand.store.report("mail", [Lost(claimed.run, claimed.claim)])

    assert (await scrape(rota))("rota_lease_expired_total", queue="mail", task="send") == 1


async def test_a_scrape_has_histograms_of_how_long_jobs_waited_and_ran(rota: Rota, hand: Hand, send: Any) -> None:
    for _ in range(3):
        await finish(hand, await send.enqueue())

    seen = await scrape(rota)

    for name in ("rota_job_wait_seconds", "rota_job_run_seconds"):
        assert seen(f"{name}_count", queue="mail", task="send") == 3
        assert seen(f"{name}_sum", queue="mail", task="send") < 60
        bounds = [dict(labels)["le"] for found, labels in seen.samples if found == f"{name}_bucket"]
        assert bounds == [
            "0.004",
            "0.016",
            "0.064",
            "0.256",
            "1.024",
            "4.096",
            "16.384",
            "65.536",
            "262.144",
            "1048.576",
            "4194.304",
            "+Inf",
        ]
        below = [seen(f"{name}_bucket", queue="mail", task="send", le=bound) for bound in bounds]
        assert below == sorted(below)
        assert below[-1] == 3


async def test_a_scrape_says_who_serves_a_queue_and_with_how_many_slots(rota: Rota, hand: Hand, send: Any) -> None:
    await send.enqueue()
    await hand.store.renew_registration('{"state": "active", "queues": ["mail"], "slots": 10, "busy": 4}')

    seen = await scrape(rota)

    assert seen("rota_workers", state="active") == 1
    assert (seen("rota_worker_slots", state="busy"), seen("rota_worker_slots", state="free")) == (4, 6)
    assert seen("rota_queue_workers", queue="mail") == 1


async def test_a_scrape_has_locked_scheduled_paused_and_undelivered_counts(rota: Rota, hand: Hand, send: Any) -> None:
    first = await send.using(lock="account:7").enqueue()
    await send.using(lock="account:7").enqueue()
    await send.using(after=[first]).enqueue()
    await rota.schedules.put("hourly", Every(timedelta(hours=1)), send.call())
    await rota.schedules.put("daily", Every(timedelta(days=1)), send.call())
    await rota.schedules.pause("daily")
    await rota.queue("mail").pause()

    seen = await scrape(rota)

    assert (seen("rota_queue_locks", queue="mail"), seen("rota_queue_lock_waiting", queue="mail")) == (1, 1)
    assert seen("rota_schedules", queue="mail", state="active") == 1
    assert seen("rota_schedules", queue="mail", state="paused") == 1
    assert seen("rota_schedule_lag_seconds", queue="mail") == 0
    assert seen("rota_queue_paused", queue="mail") == 1
    assert seen("rota_queue_outbox", queue="mail") == 0


async def test_a_scrape_says_what_is_at_risk_on_the_server(own_server: OwnServers) -> None:
    server = own_server(appendonly="yes", maxmemory="200mb", maxmemory_policy="allkeys-lru")
    rota = Rota(server.url)

    seen = await scrape(rota)

    assert seen("rota_store_memory_limit_bytes") == 200 * 2**20
    assert 0 < seen("rota_store_memory_bytes") < 200 * 2**20
    assert seen("rota_store_noeviction") == 0
    assert seen("rota_store_aof_enabled") == 1
    assert seen("rota_store_last_write_ok", kind="aof") == 1
    assert seen("rota_store_evicted_keys_total") == 0
    await rota.close()


async def test_a_store_that_is_away_is_a_figure_and_no_error(own_server: OwnServers) -> None:
    server = own_server()
    rota = Rota(server.url, patience=0.2)
    assert (await scrape(rota))("rota_store_up") == 1

    server.kill()
    seen = await scrape(rota)

    assert seen("rota_store_up") == 0
    assert "rota_build_info" in seen.names
    await rota.close()


async def test_two_processes_tell_the_same(server: Server, namespace: str, rota: Rota, send: Any) -> None:
    """Whichever server is scraped: nothing is counted in memory."""
    await send.enqueue()
    other = Rota(server.url, namespace=namespace)

    ours, theirs = await scrape(rota), await scrape(other)

    jobs = [(name, labels) for name, labels in ours.samples if name.startswith(("rota_queue_jobs", "rota_jobs"))]
    assert len(jobs) > 10
    assert [ours.samples[key] for key in jobs] == [theirs.samples[key] for key in jobs]
    await other.close()


async def test_a_user_without_the_right_to_ask_the_server_gets_the_rest(own_server: OwnServers) -> None:
    server, secret = own_server(tcp=True), secrets.token_hex(8)
    rights = f"~rota:* &rota:* -@all +@read +@write +@connection +@scripting +@pubsub -@dangerous +time >{secret} on"
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "scraper", *rights.split())
    rota = Rota(server.url.replace("redis://", f"redis://scraper:{secret}@"))

    seen = await scrape(rota)

    assert seen("rota_store_up") == 1
    assert "rota_store_memory_bytes" not in seen.names
    await rota.close()
