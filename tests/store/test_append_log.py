"""log: lines that a handler leaves, up to 1,000 of them or 256 KiB."""

from __future__ import annotations

import pytest

from rota.core.ids import JobRef
from tests.store.driver import QUEUE, Driver


async def _lines(driver: Driver, ref: JobRef) -> list[tuple[str, str]]:
    return [(line.level, line.text) for line in await driver.views.log(ref)]


@pytest.mark.requirement("K-7")
async def test_lines_are_kept_in_order_with_their_time(driver: Driver) -> None:
    ref = await driver.one()
    (job,) = await driver.worker().claim()
    before = driver.now()

    assert await driver.worker().store.append_log(QUEUE, job.run, job.claim, 1, ["info one", "error two  words\nof €"])
    assert await driver.worker().store.append_log(QUEUE, job.run, job.claim, 3, ["info "])

    lines = await driver.views.log(ref)
    assert [(line.level, line.text) for line in lines] == [("info", "one"), ("error", "two  words\nof €"), ("info", "")]
    assert all(before <= line.at <= driver.now() for line in lines)


async def test_lines_sent_again_are_kept_once_also_when_more_come_with_them(driver: Driver) -> None:
    ref = await driver.one()
    (job,) = await driver.worker().claim()
    await driver.worker().store.append_log(QUEUE, job.run, job.claim, 1, ["info 1", "info 2"])
    before = driver.dump()

    await driver.worker().store.append_log(QUEUE, job.run, job.claim, 1, ["info 1", "info 2"])
    assert driver.dump() == before
    await driver.worker().store.append_log(QUEUE, job.run, job.claim, 2, ["info 2", "info 3"])

    assert [text for _, text in await _lines(driver, ref)] == ["1", "2", "3"]


async def test_the_next_attempt_adds_to_the_log(driver: Driver) -> None:
    ref = await driver.one()
    (job,) = await driver.worker().claim()
    await driver.worker().store.append_log(QUEUE, job.run, job.claim, 1, ["info first"])
    await driver.worker().fail(job, "")
    (job,) = await driver.worker().claim()

    await driver.worker().store.append_log(QUEUE, job.run, job.claim, 1, ["info second"])

    assert [text for _, text in await _lines(driver, ref)] == ["first", "second"]


async def test_a_log_is_bounded_in_lines_and_what_does_not_fit_is_counted(driver: Driver) -> None:
    ref = await driver.one()
    (job,) = await driver.worker().claim()

    for start in range(1, 1_201, 300):
        await driver.worker().store.append_log(
            QUEUE, job.run, job.claim, start, [f"info {n}" for n in range(start, start + 300)]
        )

    assert [text for _, text in await _lines(driver, ref)] == [str(n) for n in range(1, 1_001)]
    assert driver.hash("logs")[ref.run or ""].endswith(" 200")


async def test_a_log_is_bounded_in_bytes(driver: Driver) -> None:
    ref = await driver.one()
    (job,) = await driver.worker().claim()

    for number in range(1, 41):
        await driver.worker().store.append_log(QUEUE, job.run, job.claim, number, ["info " + "x" * 10_000])

    kept = await _lines(driver, ref)
    assert len(kept) == 262_144 // 10_005
    await driver.worker().store.append_log(QUEUE, job.run, job.claim, 41, ["info small enough"])
    assert (await _lines(driver, ref))[-1] == ("info", "small enough")


async def test_numbers_that_were_left_out_are_counted_as_lines_that_were_not_kept(driver: Driver) -> None:
    """A runner sends no more than is kept; the number of its last line says how many there were."""
    ref = await driver.one()
    (job,) = await driver.worker().claim()
    await driver.worker().store.append_log(QUEUE, job.run, job.claim, 1, ["info 1", "info 2"])

    for _ in range(2):  # sent again, it counts once
        await driver.worker().store.append_log(QUEUE, job.run, job.claim, 10, ["info 10"])

    assert [text for _, text in await _lines(driver, ref)] == ["1", "2", "10"]
    assert driver.hash("logs")[job.run].split()[1:] == ["10", "3", str(len("info 1info 2info 10")), "7"]
