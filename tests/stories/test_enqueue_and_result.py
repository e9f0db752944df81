"""Enqueue a call, and wait for what it returns."""

from __future__ import annotations

from types import ModuleType

import pytest

from rota import InvalidArguments, Rota
from tests.servers import Server


@pytest.mark.requirement("S0-1", "S4-4", "S2-21")
@pytest.mark.usefixtures("worker")
async def test_a_task_is_enqueued_and_its_result_comes_back(shop: ModuleType) -> None:
    job = await shop.price.enqueue(3, each=2.5)

    assert await job.result(timeout=10) == 7.5
    assert await job.state() == "completed"


@pytest.mark.requirement("S4-37")
@pytest.mark.usefixtures("worker")
async def test_plain_functions_run_in_threads_and_heavy_ones_in_processes(shop: ModuleType) -> None:
    small = await shop.resize.enqueue(640, 480)
    heavy = await shop.count_primes.enqueue(100)

    assert await small.result(timeout=10) == [320, 240]
    assert await heavy.result(timeout=10) == 25


async def test_a_task_is_still_a_function(shop: ModuleType) -> None:
    """Calling it just runs it, here and now: no server is needed for a unit test."""
    assert await shop.price(2, 1.5) == 3.0
    assert shop.resize(10, 20) == [5, 10]


async def test_arguments_that_do_not_fit_are_refused_when_they_are_enqueued(shop: ModuleType) -> None:
    with pytest.raises(InvalidArguments, match="amount"):
        await shop.price.enqueue("three", each=2.5)


@pytest.mark.usefixtures("worker")
async def test_a_program_without_the_code_enqueues_by_name(valkey: Server, namespace: str) -> None:
    async with Rota(valkey.url, namespace=namespace) as other:
        job = await other.send("price", 3, each=2.5)

        assert await job.result(timeout=10) == 7.5
        with pytest.raises(InvalidArguments, match="amount"):
            await other.send("price", "three", each=2.5)
