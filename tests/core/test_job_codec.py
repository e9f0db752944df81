"""Encoding of records: round trips, and records of other versions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rota.core.job_options import DEFAULT_OPTIONS, Keep, Options
from rota.core.job_record import AttemptCounts, ErrorRecord, HistoryEntry
from rota.core.job_record_codec import (
    UndecodableRecord,
    decode_arguments,
    decode_body,
    decode_counts,
    decode_error,
    decode_history,
    decode_progress,
    decode_record,
    decode_result,
    encode_arguments,
    encode_body,
    encode_error,
    encode_result,
)
from rota.core.retry import Fixed, Retry, Rule
from rota.core.state_transitions import JobState

RUN = "000000012"
OPTION_NAMES = ["priority", "retry", "keep", "tags", "meta", "timeout_ms", "expires_at"]
json_values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**53), 2**53),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
    ),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=10,
)
options = st.builds(
    Options,
    priority=st.integers(-100, 100),
    timeout_ms=st.none() | st.integers(1, 10**9),
    progress_timeout_ms=st.none() | st.integers(1, 10**9),
    retry=st.just(Retry()) | st.just(Retry(attempts=9, backoff=[1, 2], on={"X": Rule(backoff=Fixed(1))})),
    max_stalls=st.integers(0, 10),
    at_most_once=st.booleans(),
    expires_ms=st.none() | st.integers(0, 10**9),
    expires_at=st.none() | st.integers(0, 10**13),
    keep=st.just(Keep()) | st.just(Keep(finished=0.5, failed_count=3)),
    tags=st.lists(st.text(min_size=1, max_size=10), max_size=3, unique=True).map(tuple),
    meta=st.dictionaries(st.text(), json_values, max_size=3),
)
tasks = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=50)
keys = st.text().filter(lambda key: key != "*")


@pytest.mark.requirement("S4-4", "S4-15")
@given(options, tasks, st.lists(json_values, max_size=4), st.sampled_from(["=chosen", "abcdefgh"]))
def test_a_record_can_be_written_and_read_back(written: Options, task: str, args: list[Any], head: str) -> None:
    """Data of any JSON value, delivered unchanged, with all options."""
    arguments = encode_arguments(tuple(args), {})
    record = f"{head} 1763280000000\n".encode() + encode_body(written, task, arguments)

    body = decode_body(RUN, record)

    assert (body.options, body.task, body.enqueued_at) == (written, task, 1_763_280_000_000)
    assert body.id == ("chosen" if head[0] == "=" else f"{RUN}-{head}")
    assert decode_arguments(body.arguments) == (args, {})


def test_options_that_are_the_defaults_take_no_room() -> None:
    assert encode_body(DEFAULT_OPTIONS, "noop", b"[]") == b"\nnoop\n[]"


def test_new_lines_in_arguments_do_not_end_the_record() -> None:
    record = b"=x 5\n" + encode_body(DEFAULT_OPTIONS, "noop", b'["a\n\nb"]')

    assert decode_body(RUN, record).arguments == b'["a\n\nb"]'


def test_options_of_a_newer_version_are_read_as_far_as_they_are_known() -> None:
    """Old and new workers share a server during an upgrade."""
    record = b'=x 5\n{"priority":3,"colour":"blue"}\t4\t{"shape":1}\t\t\t\t\tmore\tand more\nnoop\n[]'

    read = decode_body(RUN, record).options

    assert (read.priority, read.retry.attempts) == (3, 4)


@pytest.mark.requirement("S3-16")
@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"\n\n\n",
        b"=x\n\nnoop\n[]",
        b"=x five\n\nnoop\n[]",
        b"=x 5 6\n\nnoop\n[]",
        b"=x 5\n\nnoop",
        b"=x 5\n{\nnoop\n[]",
        b"=x 5\n[]\nnoop\n[]",
        b'=x 5\n{"priority":"high"}\nnoop\n[]',
        b"=x 5\n\t0\nnoop\n[]",
        b'=x 5\n{"keep":{"finished":-1}}\nnoop\n[]',
        b'=x 5\n\t\t{"backoff":{"type":"eval","code":"1"}}\nnoop\n[]',
        b"\xff 5\n\nnoop\n[]",
        b"=x 5\n\n\xff\n[]",
        b"=x " + b"9" * 5000 + b"\n\nnoop\n[]",
        b'=x 5\n\t\t\t\t{"meta":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}\nnoop\n[]",
        b"=x 5\n\t\t\t" + b"9" * 5000 + b"\nnoop\n[]",
        b'=x 5\n{"timeout_ms":1e400}\nnoop\n[]',
    ],
)
def test_a_record_that_cannot_be_read_says_so_and_nothing_else(record: bytes) -> None:
    """Failed with a clear error; never a crash."""
    with pytest.raises(UndecodableRecord, match=RUN):
        decode_body(RUN, record)


hostile = st.one_of(
    st.binary(max_size=200),
    st.lists(st.binary(max_size=40), min_size=2, max_size=6).map(b"\n".join),
    st.tuples(
        st.sampled_from([b"=x 5", b"abcdefgh 5", b" ", b"=x 5e3", b"= -1"]),
        st.one_of(
            st.binary(max_size=60),
            json_values.map(lambda value: json.dumps(value).encode()),
            st.dictionaries(st.sampled_from(OPTION_NAMES), json_values, max_size=4).map(
                lambda value: json.dumps(value).encode()
            ),
        ),
        st.binary(max_size=40),
    ).map(b"\n".join),
)


@given(hostile)
@example(b"=x 5\n{}\nnoop\n[]")
def test_whatever_stands_in_a_record_it_is_read_or_refused(record: bytes) -> None:
    try:
        body = decode_body(RUN, record)
    except UndecodableRecord:
        return
    assert isinstance(body.options, Options)


@given(hostile, st.sampled_from([b"", b"processing 1.t w1 1763280000000 5 1 0 0 0 0 - "]))
def test_a_run_is_shown_with_its_state_whatever_stands_in_its_record(record: bytes, line: bytes) -> None:
    fields = [RUN.encode(), record, line, b"processing" if line else b"pending", b"1763280000000", *[b""] * 5]

    shown = decode_record("q", fields)

    assert shown.state is (JobState.PROCESSING if line else JobState.PENDING)
    assert shown.ref.run == RUN


@pytest.mark.requirement("S4-4")
@given(st.lists(json_values, max_size=4), st.dictionaries(keys, json_values, max_size=4))
def test_arguments_can_be_written_and_read_back(args: list[Any], kwargs: dict[str, Any]) -> None:
    assert decode_arguments(encode_arguments(tuple(args), kwargs)) == (args, kwargs)


@given(st.one_of(st.binary(max_size=50), json_values.map(lambda value: json.dumps(value).encode())))
@example(b"5")
@example(b'{"*": 5}')
@example(b"")
@example(b"[" * 100_000)
def test_whatever_stands_where_arguments_should_it_is_read_or_refused(text: bytes) -> None:
    try:
        args, kwargs = decode_arguments(text)
    except UndecodableRecord:
        return
    assert isinstance(args, list)
    assert isinstance(kwargs, dict)


@pytest.mark.requirement("S2-21", "S4-16")
@given(json_values)
def test_a_result_can_be_written_and_read_back(value: Any) -> None:
    assert decode_result(encode_result(value)) == value


def test_no_result_is_none() -> None:
    assert encode_result(None) == b""
    assert decode_result(b"") is None
    assert decode_result(None) is None


@pytest.mark.requirement("S4-21")
@given(
    st.builds(
        ErrorRecord,
        kind=st.sampled_from(["exception", "timeout", "stall", "permanent"]),
        type=st.text(),
        message=st.text(),
        traceback=st.text(),
        attributes=st.dictionaries(st.text(), json_values, max_size=3),
    )
)
def test_an_error_can_be_written_and_read_back(error: ErrorRecord) -> None:
    assert decode_error(encode_error(error)) == error


def test_history_is_one_entry_a_line() -> None:
    text = b'{"at":5,"verb":"fail","state":"scheduled","worker":"w","attempt":1,"note":"a\\nb"}\n{"verb":"reap","at":6}'

    assert decode_history(text) == [
        HistoryEntry(at=5, verb="fail", state="scheduled", worker="w", attempt=1, note="a\nb"),
        HistoryEntry(at=6, verb="reap"),
    ]
    assert decode_history(b"") == []


def test_counts_are_empty_at_the_first_attempt() -> None:
    assert decode_counts("") == AttemptCounts(attempt=1)
    assert decode_counts("5 1 2 3 4") == AttemptCounts(attempt=5, failures=1, stalls=2, snoozes=3, handbacks=4)


def test_progress_has_numbers_and_a_note_with_spaces() -> None:
    progress = decode_progress(b"1000 3000 5 10 half of it")

    assert progress is not None
    assert (progress.percent, progress.note, progress.per_second, progress.seconds_left) == (50, "half of it", 2.5, 2.0)
    assert decode_progress(b"") is None
    nothing = decode_progress(b"1000 1000 0 0 ")
    assert nothing is not None
    assert (nothing.percent, nothing.per_second, nothing.seconds_left) == (100, None, None)


@pytest.mark.requirement("S2-18")
@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
def test_a_percentage_stays_between_nothing_and_all(done: float, total: float) -> None:
    progress = decode_progress(f"1 2 {done} {total} ".encode())
    assert progress is not None
    assert 0 <= progress.percent <= 100


def test_due_times_are_read_out_of_scores_of_every_priority() -> None:
    due = 1_763_280_000_123
    for priority in (-100, -1, 0, 1, 100):
        for state, score in ((b"pending", priority * 2**42 + due), (b"scheduled", due * 256 + priority + 100)):
            fields = [RUN.encode(), b"x 5\n\nnoop\n[]", b"", state, str(score).encode(), *[b""] * 5]
            assert decode_record("q", fields).due_at == due
