"""Which shard a job belongs in: with those that it must meet, and else evenly."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.ids import checked_queue
from rota.core.shards import MAX_SHARDS, base_of, choose_shard, shard_name, shard_names
from rota.errors import InvalidOption

counts = st.integers(1, MAX_SHARDS)
texts = st.text(min_size=1, max_size=40)


@given(counts, texts, st.integers(0, 10_000), st.integers(0, 10_000))
def test_an_id_or_a_lock_is_always_in_the_same_shard(count: int, text: str, turn: int, other: int) -> None:
    by_id = choose_shard("mail", count, id=text, lock="", turn=turn)

    assert by_id in shard_names("mail", count)
    assert by_id == choose_shard("mail", count, id=text, lock="", turn=other)
    assert by_id == choose_shard("mail", count, id="", lock=text, turn=other)


def test_ids_are_where_older_versions_put_them() -> None:
    """Programs of different versions share a queue: the rule is a part of what is stored."""
    places = [choose_shard("mail", 8, id=name, lock="", turn=0) for name in ("welcome-7", "a", "b", "ä")]

    assert places == ["mail~2of8", "mail~4of8", "mail~2of8", "mail~4of8"]


def test_ids_are_spread_evenly_and_jobs_without_one_take_turns() -> None:
    by_id = Counter(choose_shard("mail", 8, id=f"user-{n}", lock="", turn=0) for n in range(8_000))
    by_turn = Counter(choose_shard("mail", 8, id="", lock="", turn=n) for n in range(8_000))

    assert min(by_id.values()) > 850
    assert set(by_turn.values()) == {1_000}


def test_an_id_and_a_lock_are_refused_together() -> None:
    with pytest.raises(InvalidOption, match="an id or a lock"):
        choose_shard("mail", 8, id="a", lock="b", turn=0)


@pytest.mark.parametrize("queue", ["mail", "mail-fail", "a.b_c-D"])
def test_a_shard_is_a_queue_that_knows_its_whole(queue: str) -> None:
    for shard in (0, 7, 255):
        name = shard_name(queue, shard, 256)
        assert checked_queue(name) == name
        assert base_of(name) == queue
        assert name.endswith("-fail") == queue.endswith("-fail")
    assert base_of(queue) == queue
    assert shard_names(queue, 0) == [queue]
    assert shard_names(shard_name(queue, 3, 8), 8) == [shard_name(queue, 3, 8)]


@pytest.mark.parametrize(
    "queue",
    [
        "~",
        "~3of4",
        "mail~",
        "mail~3",
        "mail~xof4",
        "mail~3of4~1of2",
        "mail~1of1234",
        "mail~0of4",
        "mail~5of4",
        "mail~1of257",
        "ma~il",
    ],
)
def test_other_names_with_that_sign_are_no_queues(queue: str) -> None:
    with pytest.raises(InvalidOption):
        checked_queue(queue)
