"""Numbered calls: a call with a number that the server has seen is answered as before, so numbers must not repeat."""

from __future__ import annotations

from rota.core.lua_constants import REPLY_KEPT_MS
from rota.store.create_dependents_and_deliver_outcomes import DependencyStore, JobWithParents
from rota.store.redis.retrying_client import MAX_PATIENCE_S
from tests.store.driver import QUEUE, Driver, new_job


async def test_two_dependency_stores_of_one_job_store_prepare_different_jobs(driver: Driver) -> None:
    first, second = DependencyStore(driver.client), DependencyStore(driver.client)

    ((one,), _) = await first.prepare_dependents(QUEUE, {0: JobWithParents(new_job("one"), ())})
    ((other,), _) = await second.prepare_dependents(QUEUE, {0: JobWithParents(new_job("other"), ())})

    assert one.run != other.run
    assert await driver.client.publish_prepared_runs(QUEUE, [one.run, other.run]) == ["visible", "visible"]
    assert driver.hash("ids") == {"one": one.run, "other": other.run}


def test_no_caller_sends_a_call_again_after_its_reply_is_forgotten() -> None:
    """A batch whose caller is cancelled is sent again in the background, with new patience; a minute is for its way."""
    assert 2 * MAX_PATIENCE_S + 60 < REPLY_KEPT_MS / 1000
