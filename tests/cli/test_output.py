"""How things are written: tables, times, log lines."""

from __future__ import annotations

import json
import logging
import sys

from rota.cli.output import Table, clean, distance, plain
from rota.core.format_iso_time import iso_time_or_none
from rota.worker.monitoring.logging_setup import JsonFormatter


def test_columns_are_aligned_and_numbers_stand_to_the_right() -> None:
    shown = plain(Table(("queue", "pending"), [("default", "7"), ("a\nb", "12345678")]))

    assert shown.split("\n") == ["queue     pending", "default         7", "a b      12345678"]


def test_control_characters_are_shown_and_not_sent() -> None:
    assert clean("a\x1b[31m\x9b\u202e\tb\nc") == "a\\x1b[31m\\x9b\\u202e\tb\nc"


def test_times_are_exact_for_programs_and_relative_for_people() -> None:
    assert iso_time_or_none(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
    assert iso_time_or_none(None) is None
    assert distance(1_000, 186_000) == "3 min 5 s ago"
    assert distance(5_200, 1_000) == "in 4.2 s"


def test_a_log_line_is_one_json_object_with_what_the_call_added() -> None:
    record = logging.LogRecord("rota.worker", logging.WARNING, __file__, 1, "%s failed", ("mail:x",), None)
    record.job_id, record.queue, record.took_ms = "mail:x", "mail", 12

    line = json.loads(JsonFormatter().format(record))

    assert line.pop("time").endswith("Z")
    assert line.pop("took_ms") == 12
    assert (line.pop("level"), line.pop("logger"), line.pop("message")) == ("warning", "rota.worker", "mail:x failed")
    assert line == {"job_id": "mail:x", "queue": "mail"}


def test_a_log_line_has_the_traceback() -> None:
    try:
        raise ValueError("no\nway")
    except ValueError:
        record = logging.LogRecord("rota", logging.ERROR, __file__, 1, "broken", (), sys.exc_info())

    text = JsonFormatter().format(record)

    assert "\n" not in text
    assert json.loads(text)["traceback"].endswith("ValueError: no\nway")
