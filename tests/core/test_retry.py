"""How long to wait before the next attempt, and when to stop trying."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.error_record import class_names
from rota.core.job_options import MAX_TIME_MS, Options
from rota.core.job_record import AttemptCounts
from rota.core.next_attempt_time import due_after, next_attempt
from rota.core.retry import MAX_ATTEMPTS, MAX_SECONDS, Exponential, Fixed, Retry, Rule, Steps, checked_retry, to_ms
from rota.errors import InvalidOption, PermanentError, RetryLater

chances = st.floats(0, 1, exclude_max=True)
seconds = st.floats(0, MAX_SECONDS, allow_nan=False)
failures = st.integers(1, MAX_ATTEMPTS)


@pytest.mark.requirement("S2-20", "S4-7", "S4-20", "K-5")
def test_the_default_is_three_attempts_and_two_seconds_doubling_up_to_five_minutes() -> None:
    """min(max, base·2ⁿ⁻¹) after failure n."""
    default = Retry()

    assert [default.next_delay_ms(n, 0.0) for n in (1, 2, 3)] == [2_000, 4_000, None]
    many = Retry(attempts=100)
    assert [many.next_delay_ms(n, 0.0) for n in range(1, 11)] == [
        2_000,
        4_000,
        8_000,
        16_000,
        32_000,
        64_000,
        128_000,
        256_000,
        300_000,
        300_000,
    ]


@pytest.mark.requirement("S4-20", "K-5")
@given(failures, chances, st.floats(0.001, MAX_SECONDS), seconds, st.floats(0, 10))
def test_an_exponential_delay_is_its_formula_plus_at_most_the_jitter(
    n: int, chance: float, base: float, most: float, jitter: float
) -> None:
    expected = min(most, base * 2.0 ** min(n - 1, 1_000)) * 1_000

    delay = Exponential(base=base, max=most, jitter=jitter).delay_ms(n, chance)

    assert expected - 1 <= delay <= expected * (1 + jitter) + 1


@given(failures, chances)
def test_jitter_spreads_a_crowd_over_a_tenth_and_never_brings_anyone_forward(n: int, chance: float) -> None:
    plain = Exponential(jitter=0).delay_ms(n, 0)

    assert plain <= Exponential().delay_ms(n, chance) <= 1.1 * plain


@given(st.integers(1, 200), chances, seconds, seconds)
def test_an_exponential_delay_never_shrinks(n: int, chance: float, base: float, most: float) -> None:
    backoff = Exponential(base=base, max=most)

    assert backoff.delay_ms(n, chance) <= backoff.delay_ms(n + 1, chance)


@pytest.mark.requirement("S1-3")
@given(failures, chances, seconds)
def test_a_fixed_delay_is_the_same_after_every_failure(n: int, chance: float, delay: float) -> None:
    assert Fixed(delay).delay_ms(n, chance) == round(delay * 1000)
    assert round(delay * 1000) <= Fixed(delay, jitter=1).delay_ms(n, chance) <= round(delay * 2000)


@pytest.mark.requirement("S1-3", "K-4")
def test_a_list_gives_each_failure_its_delay_and_repeats_the_last() -> None:
    retry = Retry(attempts=6, backoff=[1, 0.5, 10])

    assert [retry.next_delay_ms(n, 0.5) for n in range(1, 7)] == [1_000, 500, 10_000, 10_000, 10_000, None]
    assert retry.backoff == Steps((1, 0.5, 10))


def test_durations_may_be_timedeltas() -> None:
    retry = Retry(attempts=9, backoff=Exponential(base=timedelta(seconds=1), max=timedelta(minutes=1)))  # type: ignore[arg-type]

    assert [retry.next_delay_ms(n, 0.0) for n in (1, 8)] == [1_000, 60_000]
    assert msgspec.json.decode(msgspec.json.encode(retry), type=Retry) == retry
    steps = Retry(backoff=[timedelta(seconds=3)])  # type: ignore[list-item]
    assert steps.next_delay_ms(1, 0.0) == 3_000


@pytest.mark.requirement("S1-2")
def test_attempts_count_every_failure_the_first_included() -> None:
    """N attempts are n executions."""
    assert Retry(attempts=1).next_delay_ms(1, 0.0) is None
    assert Retry(attempts=2).next_delay_ms(1, 0.0) is not None
    assert Retry(attempts=2).next_delay_ms(2, 0.0) is None


def test_rules_are_found_by_the_nearest_class_that_has_one() -> None:
    retry = Retry(
        attempts=3,
        backoff=Fixed(1),
        on={
            "OSError": Rule(attempts=10),
            "ConnectionError": Rule(backoff=[7]),
            "LookupError": Rule(attempts=1),
        },
    )

    def delays(error: BaseException) -> list[int | None]:
        return [retry.next_delay_ms(n, 0.0, class_names(error)) for n in (1, 3, 9, 10)]

    assert delays(ValueError()) == [1_000, None, None, None]
    assert delays(FileNotFoundError()) == [1_000, 1_000, 1_000, None]
    assert delays(ConnectionResetError()) == [7_000, None, None, None]
    assert delays(KeyError()) == [None] * 4


def test_rules_are_given_for_classes_or_for_their_names() -> None:
    retry = Retry(attempts=1, on={ConnectionError: Rule(attempts=9), "KeyError": Rule(attempts=2)})

    assert retry == Retry(attempts=1, on={"ConnectionError": Rule(attempts=9), KeyError: Rule(attempts=2)})
    assert retry.next_delay_ms(8, 0.0, class_names(ConnectionResetError())) is not None
    assert retry.next_delay_ms(1, 0.0, class_names(KeyError())) is not None
    assert retry.next_delay_ms(1, 0.0, class_names(OSError())) is None


def test_a_name_with_a_module_is_refused_with_the_name_to_write() -> None:
    with pytest.raises(InvalidOption, match=r"'requests.HTTPError' is not the name .*: write 'HTTPError'"):
        Retry(on={"requests.HTTPError": Rule()})


def test_the_name_of_a_class_that_is_no_base_matches_nothing() -> None:
    retry = Retry(on={"Value": Rule(attempts=9)})

    assert retry.next_delay_ms(3, 0.0, class_names(ValueError())) is None


#: what makes it, and the option that the refusal names
REFUSED: Final[list[tuple[Callable[[], object], str]]] = [
    (lambda: Retry(attempts=0), "retry"),
    (lambda: Retry(attempts=-1), "retry"),
    (lambda: Retry(attempts=MAX_ATTEMPTS + 1), "retry"),
    (lambda: Retry(attempts=True), "retry"),
    (lambda: Retry(attempts=2.0), "retry"),  # type: ignore[arg-type]
    (lambda: Retry(attempts="3"), "retry"),  # type: ignore[arg-type]
    (lambda: Retry(attempts=None), "retry"),  # type: ignore[arg-type]
    (lambda: Retry(on={"X": 5}), "retry"),  # type: ignore[dict-item]
    (lambda: Retry(on=["X"]), "retry"),  # type: ignore[arg-type]
    (lambda: Retry(on={5: Rule()}), "retry"),  # type: ignore[dict-item]
    (lambda: Retry(on={int: Rule()}), "retry"),  # type: ignore[dict-item]
    (lambda: Retry(on={"requests.HTTPError": Rule()}), "retry"),
    (lambda: Retry(on={"": Rule()}), "retry"),
    (lambda: Retry(on={"object": Rule()}), "retry"),
    (lambda: Retry(on={BaseException: Rule()}), "retry"),
    (lambda: Rule(attempts=0), "retry"),
    (lambda: Retry(backoff=[]), "backoff"),
    (lambda: Retry(backoff=["1"]), "backoff"),  # type: ignore[list-item]
    (lambda: Retry(backoff=5), "backoff"),  # type: ignore[arg-type]
    (lambda: Retry(backoff="12"), "backoff"),  # type: ignore[arg-type]
    (lambda: Retry(backoff=None), "backoff"),  # type: ignore[arg-type]
    (lambda: Rule(backoff=5), "backoff"),  # type: ignore[arg-type]
    (lambda: Exponential(base=-1), "backoff"),
    (lambda: Exponential(max=MAX_SECONDS + 1), "backoff"),
    (lambda: Exponential(base=float("nan")), "backoff"),
    (lambda: Exponential(base=float("inf")), "backoff"),
    (lambda: Exponential(base="2"), "backoff"),  # type: ignore[arg-type]
    (lambda: Exponential(base=True), "backoff"),
    (lambda: Exponential(jitter=-0.1), "backoff"),
    (lambda: Exponential(jitter=10.1), "backoff"),
    (lambda: Exponential(jitter=float("nan")), "backoff"),
    (lambda: Exponential(jitter="1"), "backoff"),  # type: ignore[arg-type]
    (lambda: Fixed(-1), "backoff"),
    (lambda: Fixed(None), "backoff"),  # type: ignore[arg-type]
    (lambda: Steps(()), "backoff"),
    (lambda: Steps(5), "backoff"),  # type: ignore[arg-type]
    (lambda: Steps((1, -1)), "backoff"),
]


@pytest.mark.parametrize(
    ("make", "option"),
    [pytest.param(make, option, id=f"{option}-{place}") for place, (make, option) in enumerate(REFUSED)],
)
def test_a_policy_out_of_bounds_is_refused_where_it_is_made(make: Callable[[], object], option: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        make()
    assert refused.value.option == option


@pytest.mark.requirement("S1-2")
def test_a_bare_number_is_a_number_of_attempts() -> None:
    assert checked_retry(5) == Retry(attempts=5)
    for wrong in (0, True, "5", 5.0, None, [1, 2]):
        with pytest.raises(InvalidOption, match="retry"):
            checked_retry(wrong)


backoffs = st.one_of(
    st.builds(Exponential, base=seconds, max=seconds, jitter=st.floats(0, 10)),
    st.builds(Fixed, seconds, jitter=st.floats(0, 10)),
    st.builds(Steps, st.lists(seconds, min_size=1, max_size=5).map(tuple), jitter=st.floats(0, 10)),
)
names = st.from_regex(r"[A-Za-z_]\w{0,20}", fullmatch=True).filter(
    lambda name: name.isidentifier() and name not in ("object", "BaseException")
)
rules = st.builds(Rule, attempts=st.none() | failures, backoff=st.none() | backoffs)
retries = st.builds(Retry, attempts=failures, backoff=backoffs, on=st.dictionaries(names, rules, max_size=3))


@given(retries, failures, chances)
def test_a_policy_travels_as_json_and_means_the_same_afterwards(retry: Retry, n: int, chance: float) -> None:
    travelled = msgspec.json.decode(msgspec.json.encode(retry), type=Retry)

    assert travelled == retry
    kinds = ["X", *map(str, retry.on)]
    assert travelled.next_delay_ms(n, chance, kinds) == retry.next_delay_ms(n, chance, kinds)


# --- what follows from an error ------------------------------------------------------------------------------------


@pytest.mark.requirement("S4-18")
def test_a_permanent_error_is_final_whatever_is_left() -> None:
    assert next_attempt(Options(retry=Retry(attempts=9)), AttemptCounts(), [], 0.0, PermanentError("no")) == "final"


@pytest.mark.requirement("S3-18")
def test_what_may_run_only_once_is_final_at_its_first_failure() -> None:
    options = Options(at_most_once=True, retry=Retry(attempts=9))

    assert next_attempt(options, AttemptCounts(), [], 0.0, RetryLater(after=1)) == "final"
    assert options.attempts == 1


@pytest.mark.requirement("S4-19")
def test_the_last_failure_is_final_also_if_the_error_asks_for_another_time() -> None:
    options = Options(retry=Retry(attempts=2))

    assert next_attempt(options, AttemptCounts(failures=1), [], 0.0, RetryLater(after=1)) == "final"


@pytest.mark.requirement("S4-20")
def test_a_time_of_the_errors_own_replaces_the_backoff() -> None:
    class Throttled(Exception):
        def __init__(self, retry_at: object) -> None:
            self.retry_at = retry_at

    def moment(error: BaseException) -> str:
        return next_attempt(Options(), AttemptCounts(), [], 0.0, error)

    assert moment(ValueError()) == "+2000"
    assert moment(RetryLater(after=90)) == "+90000"
    assert moment(RetryLater(at=datetime(2030, 1, 1, tzinfo=UTC))) == "1893456000000"
    assert moment(Throttled(datetime(2030, 1, 1, tzinfo=UTC))) == "1893456000000"
    assert moment(Throttled(1_893_456_000.5)) == "1893456000500"
    for nonsense in (None, "soon", True, float("nan"), float("inf"), object(), [1]):
        assert moment(Throttled(nonsense)) == "+2000"
    assert moment(Throttled(-5)) == "0"
    assert moment(Throttled(1e300)) == str(MAX_TIME_MS)


@given(st.floats(allow_nan=False))
def test_a_moment_is_never_negative_nor_beyond_a_year(wait: float) -> None:
    text = due_after(wait)

    assert text[0] == "+"
    assert 0 <= int(text[1:]) <= MAX_SECONDS * 1000


@given(seconds)
def test_seconds_become_whole_milliseconds(wait: float) -> None:
    assert abs(to_ms(wait, "x") - wait * 1000) <= 0.5 + 1e-3
