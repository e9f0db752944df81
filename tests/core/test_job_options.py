"""Job options: what each accepts, and that what it does not is refused with its name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.ids import checked_id, checked_new_queue, checked_queue, checked_task_name
from rota.core.job_options import (
    DEFAULT_OPTIONS,
    MAX_TIME_MS,
    PRIORITIES,
    Keep,
    Options,
    checked_priority,
    checked_time_ms,
    make_options,
)
from rota.core.retry import MAX_SECONDS, Retry
from rota.core.state_transitions import JobState
from rota.errors import InvalidJob, InvalidOption

YEAR = MAX_SECONDS


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


#: option -> values that are refused
REFUSED: dict[str, list[Any]] = {
    "priority": ["urgent", "HIGH", -101, 101, 1.0, True, None, [1]],
    "timeout": [0, -1, 0.0001, YEAR + 1, "5", True, float("nan"), float("inf"), timedelta(seconds=-1), [5]],
    "progress_timeout": [0, -1, YEAR + 1, "5", True, timedelta(0)],
    "retry": [0, -1, "3", 1.5, True, None, [1, 2], {"attempts": 3}],
    "max_stalls": [-1, 1_000_001, 1.0, "1", True, None],
    "at_most_once": [1, 0, "yes", None],
    "expires": [-1, YEAR + 1, "tomorrow", True, float("nan"), datetime(2030, 1, 1), datetime(1960, 1, 1, tzinfo=UTC)],  # noqa: DTZ001
    "keep": [-1, "1h", None, True, YEAR + 1, float("nan"), {"finished": 1}],
    "tags": ["abc", 5, None, [""], ["x" * 65], [5], ["a\nb"], [f"t{n}" for n in range(21)], [["a"]], [None], {1: 2}],
    "meta": [None, [], "x", {"x": "y" * 4096}, {"x": object()}, {"x": iter([])}, {"x": nested(5_000)}, {(1, 2): 3}],
}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        pytest.param(option, value, id=f"{option}-{place}")
        for option, values in REFUSED.items()
        for place, value in enumerate(values)
    ],
)
def test_a_value_out_of_bounds_is_refused_and_the_option_named(option: str, value: Any) -> None:
    given_options = {option: value} | ({"progress_timeout": 5} if option == "timeout" else {})

    with pytest.raises(InvalidOption) as refused:
        make_options(given_options)

    assert refused.value.option == option
    assert str(refused.value).startswith(f"{option}: ")
    assert isinstance(refused.value, InvalidJob | ValueError)


@pytest.mark.parametrize(
    ("given_options", "effective"),
    [
        ({}, DEFAULT_OPTIONS),
        ({"priority": "critical"}, Options(priority=-15)),
        ({"priority": 100}, Options(priority=100)),
        ({"timeout": 30}, Options(timeout_ms=30_000)),
        ({"timeout": timedelta(minutes=2)}, Options(timeout_ms=120_000)),
        ({"timeout": 0.001}, Options(timeout_ms=1)),
        ({"timeout": None, "progress_timeout": 5}, Options(timeout_ms=None, progress_timeout_ms=5_000)),
        ({"progress_timeout": None}, DEFAULT_OPTIONS),
        ({"retry": 7}, Options(retry=Retry(attempts=7))),
        ({"max_stalls": 0}, Options(max_stalls=0)),
        ({"at_most_once": True}, Options(at_most_once=True)),
        ({"expires": 0}, Options(expires_ms=0)),
        ({"expires": None}, DEFAULT_OPTIONS),
        ({"expires": datetime(2030, 1, 1, tzinfo=UTC)}, Options(expires_at=1_893_456_000_000)),
        ({"keep": 0}, Options(keep=Keep(finished=0))),
        ({"keep": timedelta(days=1)}, Options(keep=Keep(finished=86_400))),
        ({"keep": Keep(failed_count=5)}, Options(keep=Keep(failed_count=5))),
        ({"tags": ["b", "a", "b"]}, Options(tags=("b", "a"))),
        ({"tags": ["x" * 64] + [f"t{n}" for n in range(19)]}, Options(tags=("x" * 64, *(f"t{n}" for n in range(19))))),
        ({"meta": {"a": [1, None, {"é": "€"}]}}, Options(meta={"a": [1, None, {"é": "€"}]})),
    ],
)
def test_a_value_within_bounds_becomes_effective(given_options: dict[str, Any], effective: Options) -> None:
    assert make_options(given_options) == effective


def test_an_option_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(InvalidOption, match="max_stalls") as refused:
        make_options({"prioritty": 5})
    assert refused.value.option == "prioritty"


def test_a_handler_without_any_timeout_is_refused() -> None:
    with pytest.raises(InvalidOption) as refused:
        make_options({"timeout": None})
    assert refused.value.option == "timeout"


@pytest.mark.requirement("K-1", "S2-2")
def test_priorities_have_names_and_lower_numbers_come_first() -> None:
    assert PRIORITIES == {"critical": -15, "high": -10, "medium": -5, "normal": 0, "low": 10}
    assert [checked_priority(name) for name in PRIORITIES] == sorted(PRIORITIES.values())


@pytest.mark.requirement("S4-7")
def test_the_defaults_are_those_of_the_specification() -> None:
    """In the numbers that the specification chose."""
    assert (DEFAULT_OPTIONS.timeout_ms, DEFAULT_OPTIONS.max_stalls, DEFAULT_OPTIONS.attempts) == (300_000, 3, 3)
    assert Keep().retention(JobState.COMPLETED) == Keep().retention(JobState.CANCELLED) == "3600000:10000"
    assert Keep().retention(JobState.FAILED) == "2592000000:100000"


@pytest.mark.parametrize(
    "values",
    [
        {"finished": -1},
        {"failed": "1"},
        {"finished": None},
        {"finished_count": -1},
        {"failed_count": 1.5},
        {"finished_count": True},
        {"failed_count": 10_000_001},
        {"finished": float("inf")},
    ],
)
def test_a_keep_out_of_bounds_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption) as refused:
        Keep(**values)
    assert refused.value.option == "keep"


def test_a_keep_may_be_given_as_timedeltas() -> None:
    keep = Keep(finished=timedelta(minutes=1), failed=timedelta(days=1))  # type: ignore[arg-type]

    assert (keep.retention(JobState.COMPLETED), keep.retention(JobState.FAILED)) == ("60000:10000", "86400000:100000")
    assert msgspec.json.decode(msgspec.json.encode(keep), type=Keep) == keep


@pytest.mark.requirement("S4-5")
@pytest.mark.parametrize("id", ["a", "A-z_0.9", "x" * 128, ".", "-", "1"])
def test_an_id_of_the_allowed_characters_is_taken_as_it_is(id: str) -> None:
    assert checked_id(id) == id


@pytest.mark.requirement("S4-5")
@pytest.mark.parametrize("id", ["", "x" * 129, "a b", "a:b", "a@b", "ä", "a\n", "{a}", "a/b", None, 5, b"a"])
def test_any_other_id_is_refused(id: Any) -> None:
    with pytest.raises(InvalidOption) as refused:
        checked_id(id)
    assert refused.value.option == "id"


@given(st.text())
def test_an_id_is_accepted_exactly_by_its_rule(text: str) -> None:
    allowed = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
    if 1 <= len(text) <= 128 and set(text) <= allowed:
        assert checked_id(text) == text
    else:
        with pytest.raises(InvalidOption):
            checked_id(text)


@pytest.mark.requirement("S4-22")
def test_the_queue_of_failure_handlers_can_be_named_but_not_put_into() -> None:
    assert checked_queue("mail-fail") == "mail-fail"
    with pytest.raises(InvalidOption, match="reserved"):
        checked_new_queue("mail-fail")
    assert checked_new_queue("mail") == "mail"


@pytest.mark.parametrize("name", ["", "a b", "a\n", "\x00", "x" * 201, None, 5])
def test_a_task_name_that_would_break_a_record_is_refused(name: Any) -> None:
    with pytest.raises(InvalidOption) as refused:
        checked_task_name(name)
    assert refused.value.option == "name"


@pytest.mark.parametrize("name", ["send", "app.mail:send", "ünïcode", "x" * 200])
def test_a_task_name_may_be_any_word(name: str) -> None:
    assert checked_task_name(name) == name


@given(st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2109, 5, 14)), st.integers(-14, 14))  # noqa: DTZ001
def test_a_moment_with_a_zone_is_that_moment(when: datetime, hours: int) -> None:
    aware = when.replace(tzinfo=timezone(timedelta(hours=hours)))
    expected = aware.timestamp() * 1000
    if 0 <= expected <= MAX_TIME_MS:
        assert abs(checked_time_ms(aware, "run_at") - expected) <= 1


@pytest.mark.parametrize(
    "when",
    [
        datetime(2030, 1, 1),  # noqa: DTZ001
        datetime(1969, 1, 1, tzinfo=UTC),
        datetime(2200, 1, 1, tzinfo=UTC),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))),
        5,
        "now",
        None,
    ],
)
def test_a_moment_without_a_zone_or_out_of_range_is_refused(when: Any) -> None:
    with pytest.raises(InvalidOption) as refused:
        checked_time_ms(when, "run_at")
    assert refused.value.option == "run_at"
