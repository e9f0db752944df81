"""Every example runs, against a real server and a real worker, and says what it should."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.examples.programs import ROOT, run_program, running_worker
from tests.servers import OwnServers

#: Each starts several processes, and the machine may be busy.


@pytest.fixture
def env(own_server: OwnServers) -> dict[str, str]:
    """Where the example's program and worker meet: a server of their own."""
    return {"ROTA_URL": own_server().url}


def test_the_quickstart_needs_no_server(tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "quickstart.py", tmp_path)

    with running_worker("quickstart:rota", cwd=tmp_path):
        assert run_program("quickstart.py", cwd=tmp_path) == "Hello, world!\n"

    assert (tmp_path / ".rota" / ".gitignore").exists()


def test_emails_are_retried_prioritised_and_delayed(env: dict[str, str]) -> None:
    with running_worker("examples.emails:rota", env=env):
        printed = run_program("-m", "examples.emails", env=env).splitlines()

    assert printed[0].startswith("reminder: scheduled: starts in ")
    assert printed[1:-1] == [
        "Your password -> ann@example.com, attempt 1",
        "News -> all@example.com, attempt 1",
        "One second later -> ben@example.com, attempt 1",
        "Hello -> busy@example.com, attempt 3",
    ]
    assert printed[-1].startswith("dead letter: job mail:")
    assert printed[-1].endswith("failed for good: PermanentError: unknown@example.com does not exist")


def test_refunds_are_made_when_a_charge_has_failed_for_good(env: dict[str, str]) -> None:
    with running_worker("examples.refunds:rota", env=env):
        printed = run_program("-m", "examples.refunds", env=env)

    assert printed.splitlines() == [
        "order 1: charged 20.00",
        "the bank is closed",
        "order 2: released after 2 failures, try 2000.00 again at 9:00",
    ]


def test_images_are_rendered_in_processes_with_progress(env: dict[str, str]) -> None:
    with running_worker("examples.images:rota", env=env):
        printed = run_program("-m", "examples.images", env=env)

    assert " %  row " in printed
    assert "two processes: True" in printed
    assert "log: ['rendered 2000 rows']" in printed


def test_reports_are_enqueued_together(env: dict[str, str]) -> None:
    with running_worker("examples.reports:rota", "--concurrency", "50", env=env):
        printed = run_program("-m", "examples.reports", env=env)

    assert "48 reports, total 31,416" in printed
    assert "best: north in month 12" in printed
    assert "latest of the north: 3 of " in printed


def test_schedules_fire_and_are_managed_at_run_time(env: dict[str, str]) -> None:
    with running_worker("examples.schedules:rota", env=env):
        printed = run_program("-m", "examples.schedules", env=env)

    assert printed.splitlines() == [
        "ticks ran once each: True",
        "books: at 02:30 every day, America/New_York",
        "books of the west are closed",
        "left: check, close_books",
    ]


def test_the_same_id_again_is_one_job_and_never_overlaps(env: dict[str, str]) -> None:
    with running_worker("examples.same_id:rota", env=env):
        printed = run_program("-m", "examples.same_id", env=env)

    assert printed.splitlines() == [
        "page 7 is indexed: final",
        "ten changes while it runs: 1 follow-up; new: False",
        "rebuilt because of the first change",
        "rebuilt because of change 9",
        "crawled to the last page",
    ]


def test_locks_keep_bookings_of_an_account_apart(env: dict[str, str]) -> None:
    with running_worker("examples.locks:rota", "--concurrency", "20", env=env):
        printed = run_program("-m", "examples.locks", env=env)

    assert printed.splitlines() == ["waits for: account:ann", "in order, none lost: True", "ann has 120"]


def test_dependents_follow_a_chain_and_come_back_with_a_redrive(env: dict[str, str], tmp_path: Path) -> None:
    with running_worker("examples.dependencies:rota", env=env):
        printed = run_program("-m", "examples.dependencies", str(tmp_path / "south.csv"), env=env)

    assert printed.splitlines() == [
        "cancelled: True",
        "sent: it is late, or it is there",
        "sent: the summary",
        "summary of all regions",
    ]


def test_fences_and_keys_keep_a_payment_from_being_made_twice(env: dict[str, str], tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    with running_worker("examples.fences:rota", env=env):
        printed = run_program("-m", "examples.fences", str(ledger), env=env)

    assert printed.splitlines() == [
        "attempt 2: had been paid already",
        "payments of this job: 1",
        "an older fence is refused: True",
    ]


def test_orders_succeed_are_undone_and_are_held_and_resumed(env: dict[str, str]) -> None:
    with running_worker("examples.orders:rota", env=env):
        printed = run_program("-m", "examples.orders", env=env).splitlines()

    assert printed[0] == "o-1: box with a book, paid by o-1"
    assert printed[1] == "o-2: undone because step ship (default:o-2.2) failed"
    assert printed[2] == "o-3: failed because step ship (default:o-3.2) failed"
    assert printed[3].startswith("workflow order o-3: failed: step ship (default:o-3.2) failed; 2 of 3 steps done")
    assert printed[-1] == "o-3: box with a piano, paid by o-3"
