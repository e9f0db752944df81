"""Records as JSON values, the same for the command line and the HTTP API."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.format_iso_time import iso_time, iso_time_or_none
from rota.core.job_record import HistoryEntry, Progress
from rota.core.json_for_cli_and_http import history_json, progress_json, workflow_summary_json
from rota.core.workflow_record_and_decisions import WorkflowInfo
from tests.core.records import NOW


def test_times_are_iso_8601_in_utc_with_milliseconds() -> None:
    assert iso_time(0) == "1970-01-01T00:00:00.000Z"
    assert iso_time(NOW + 7) == "2027-01-15T08:00:00.007Z"
    assert iso_time_or_none(None) is None
    assert iso_time_or_none(0) == iso_time(0), "midnight of 1970 is a time, too"


@given(st.integers(0, 2**42 - 1))
def test_a_time_can_be_read_back_exactly(ms: int) -> None:
    parsed = datetime.fromisoformat(iso_time(ms))

    assert parsed.utcoffset() == datetime.now(UTC).utcoffset()
    assert round(parsed.timestamp() * 1000) == ms


def test_progress_has_its_rate_and_the_time_left() -> None:
    progress = Progress(done=30, total=120, note="resizing", started_at=NOW - 10_000, at=NOW)

    assert progress_json(progress) == {
        "percent": 25,
        "done": 30,
        "total": 120,
        "note": "resizing",
        "per_second": 3.0,
        "seconds_left": 30.0,
        "at": iso_time(NOW),
    }


@pytest.mark.parametrize(("done", "total"), [(0, 10), (0, 0), (5e-324, 5e-324), (1, 5e-324), (1e308, 1e308), (3, -1)])
def test_progress_is_json_whatever_a_handler_reports(done: float, total: float) -> None:
    shown = progress_json(Progress(done, total, "", started_at=NOW, at=NOW + 1_000))

    assert 0 <= shown["percent"] <= 100
    json.dumps(shown, allow_nan=False)


def test_progress_without_elapsed_time_has_no_rate() -> None:
    shown = progress_json(Progress(5, 10, "", started_at=NOW, at=NOW))

    assert (shown["percent"], shown["per_second"], shown["seconds_left"]) == (50, None, None)


def test_empty_fields_of_a_history_entry_are_null() -> None:
    assert history_json(HistoryEntry(NOW, "enqueue")) == {
        "at": iso_time(NOW),
        "verb": "enqueue",
        "state": None,
        "worker": None,
        "attempt": None,
        "note": None,
    }
    assert history_json(HistoryEntry(NOW, "fail", "scheduled", "w-1", 2, NOW - 5, "ValueError: x")) == {
        "at": iso_time(NOW),
        "verb": "fail",
        "state": "scheduled",
        "worker": "w-1",
        "attempt": 2,
        "note": "ValueError: x",
    }


def test_a_workflow_is_summed_up_without_its_steps() -> None:
    info = WorkflowInfo(id="w", name="order", state="running", done=1, total=3, created_at=NOW, ended_at=None, cause="")

    assert workflow_summary_json(info) == {
        "id": "w",
        "name": "order",
        "state": "running",
        "done": 1,
        "total": 3,
        "created_at": iso_time(NOW),
        "ended_at": None,
        "cause": None,
    }
