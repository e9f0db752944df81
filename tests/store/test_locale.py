"""The order of runs is that of their numbers, whatever the locale of the server."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from rota.core.ids import encode_run
from rota.core.state_transitions import JobState
from tests.servers import OwnServers
from tests.store.driver import CLOCK, QUEUE, Driver, new_job

#: In Estonian, z comes before t.
LOCALE: Final = "et_EE.UTF-8"
COUNT: Final = 31
#: Ends with t, and the last run with z.
T: Final = encode_run(26)


@pytest.fixture(scope="module")
def compiled_locale(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the compiled locale."""
    localedef = shutil.which("localedef")
    if localedef is None or not Path("/usr/share/i18n/locales/et_EE").exists():
        pytest.skip("localedef or the definition of the locale is not installed")
    folder = tmp_path_factory.mktemp("locale")
    subprocess.run([localedef, "-i", "et_EE", "-f", "UTF-8", str(folder / LOCALE)], check=True)
    return folder


@pytest.fixture
async def estonian(
    compiled_locale: Path, own_server: OwnServers, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Driver]:
    """A store on a server whose strings are ordered as in Estonian."""
    monkeypatch.setenv("LOCPATH", str(compiled_locale))
    monkeypatch.setenv("LC_ALL", LOCALE)
    driver = Driver(own_server(), namespace)
    if not driver.redis.eval("return 'z' < 't' and 1 or 0", 0):
        pytest.skip("the server does not use the locale")
    yield driver
    driver.check()
    await driver.close()


async def test_runs_are_ordered_by_their_numbers_whatever_the_locale(estonian: Driver) -> None:
    driver = estonian
    driver.stop_clock()  # so that all runs have the same score
    refs = await driver.enqueue(*[new_job() for _ in range(COUNT)])
    score = driver.redis.zscore(driver.keys.queue(QUEUE, "pending"), T)

    # The position of a run that is gone is found by comparing it with others.
    assert refs[25].run == T
    await driver.client.delete(refs[25])
    page = await driver.views.list_runs(JobState.PENDING, {QUEUE: (score, T)}, limit=COUNT, order="oldest")
    assert [run for _, run, _ in page[QUEUE][0]] == [encode_run(number) for number in range(27, COUNT + 1)]

    assert await driver.client.purge(QUEUE, newest=T) == 25
    assert await driver.client.purge(QUEUE) == COUNT - 26


async def test_a_lock_goes_to_the_run_with_the_lowest_number_whatever_the_locale(estonian: Driver) -> None:
    driver = estonian
    driver.stop_clock()
    await driver.enqueue(*[new_job(lock="door") for _ in range(25)])
    await driver.client.purge(QUEUE)
    await driver.enqueue(*[new_job(lock="door", due="+1000") for _ in range(26, COUNT + 1)])
    driver.redis.set(CLOCK, f"={driver.now() + 2_000}")

    order: list[str] = []
    while jobs := await driver.worker().claim():
        order += [job.run for job in jobs]
        await driver.worker().complete(jobs[0])

    assert order == [encode_run(number) for number in range(26, COUNT + 1)]
