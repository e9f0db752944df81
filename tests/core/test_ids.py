"""Runs, ids and references: their text is their order, and it can be read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.ids import (
    RUN_WIDTH,
    JobRef,
    auto_id,
    checked_id,
    decode_run,
    encode_run,
    is_run,
    make_suffix,
    make_suffixes,
)
from rota.errors import InvalidOption

numbers = st.integers(0, 32**RUN_WIDTH - 1)
ids = st.from_regex(r"[A-Za-z0-9._-]{1,128}", fullmatch=True)
queues = st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True).filter(lambda queue: queue != "-fail")
runs = numbers.map(encode_run)


@given(numbers, numbers)
def test_the_text_order_of_runs_is_their_number_order(a: int, b: int) -> None:
    """kue #33: ids sorted as text."""
    assert (encode_run(a) < encode_run(b)) == (a < b)
    assert (encode_run(a).encode() < encode_run(b).encode()) == (a < b)


@given(numbers)
def test_a_run_is_nine_characters_and_can_be_read_back(number: int) -> None:
    run = encode_run(number)

    assert len(run) == RUN_WIDTH
    assert is_run(run)
    assert decode_run(run) == number
    assert checked_id(run) == run


@pytest.mark.parametrize(("number", "run"), [(0, "000000000"), (34, "000000012"), (31, "00000000z"), (32, "000000010")])
def test_runs_are_written_as_documented(number: int, run: str) -> None:
    assert encode_run(number) == run


@pytest.mark.parametrize(
    "text", ["", "00000000", "0000000000", "00000000i", "00000000l", "00000000A", "00000000-", "٠00000000"]
)
def test_other_text_is_no_run(text: str) -> None:
    assert not is_run(text)


@given(numbers, st.integers(0, 2**40 - 1))
def test_a_generated_id_is_the_run_and_a_random_suffix(number: int, chance: int) -> None:
    run, suffix = encode_run(number), make_suffix(chance)
    generated = auto_id(run, suffix)

    assert len(suffix) == 8
    assert checked_id(generated) == generated
    assert generated == f"{run}-{suffix}"


@given(st.integers(0, 2**40 - 1), st.integers(0, 2**40 - 1))
def test_every_random_bit_is_in_the_suffix(a: int, b: int) -> None:
    assert (make_suffix(a) == make_suffix(b)) == (a == b)


@given(st.lists(numbers, min_size=2, max_size=20), st.binary(min_size=160, max_size=160))
def test_generated_ids_sort_by_age(runs: list[int], chances: bytes) -> None:
    generated = [auto_id(encode_run(run), suffix) for run, suffix in zip(runs, make_suffixes(chances), strict=False)]

    assert [text[:9] for text in sorted(generated)] == [encode_run(run) for run in sorted(runs)]


@given(queues, ids, st.none() | runs)
def test_a_reference_can_be_written_and_read_back(queue: str, id: str, run: str | None) -> None:
    ref = JobRef(queue, id, run)

    assert JobRef.parse(str(ref)) == ref
    assert ref.full_id == f"{queue}:{id}"


@given(ids)
def test_a_bare_id_means_the_default_queue(id: str) -> None:
    assert JobRef.parse(id) == JobRef("default", id)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        ":id",
        "queue:",
        "a:b:c",
        "q:id@",
        "q:id@short",
        "q:id@00000000i",
        "q:id@000000001@000000001",
        "q:id@0000000012",
        "a b",
        "q:a b",
        "q{}:id",
        "@000000001",
        "q:@000000001",
        "-fail:x",
        "q:id\n",
    ],
)
def test_other_text_is_no_reference(text: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        JobRef.parse(text)
    assert refused.value.option in ("id", "queue")


@given(st.text(max_size=40))
def test_any_text_is_a_reference_or_refused(text: str) -> None:
    try:
        ref = JobRef.parse(text)
    except InvalidOption:
        return
    assert JobRef.parse(str(ref)) == ref
