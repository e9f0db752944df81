"""The flags that tell the scripts what enqueueing an id again changes."""

from __future__ import annotations

from typing import Any

import pytest

from rota.core.same_id_policy import NO_UPDATE, Ignore, Reject, Update
from rota.errors import InvalidOption


def test_reject_and_ignore_leave_the_existing_run_unchanged() -> None:
    assert Reject().flags == Ignore().flags == NO_UPDATE


def test_by_default_everything_is_replaced_and_new_data_resets_the_counts() -> None:
    assert set(Update().flags) == set("dtabsok")


@pytest.mark.parametrize(
    ("update", "missing", "added"),
    [
        (Update(data=False), "dk", ""),
        (Update(run_at=False), "t", ""),
        (Update(run_at="if_later"), "t", "l"),
        (Update(run_at="if_earlier"), "t", "e"),
        (Update(retry=False), "ab", ""),
        (Update(retry={"attempts"}), "b", ""),
        (Update(retry={"backoff"}), "a", ""),
        (Update(max_stalls=False), "s", ""),
        (Update(options=False), "o", ""),
        (Update(reset_counts=True), "k", "c"),
        (Update(reset_counts=False), "k", ""),
        (Update(data=False, reset_counts=True), "dk", "c"),
    ],
)
def test_each_part_can_be_left_unchanged(update: Update, missing: str, added: str) -> None:
    assert set(update.flags) == (set(Update().flags) - set(missing)) | set(added)


def test_an_update_of_nothing_is_no_update() -> None:
    assert Update(data=False, run_at=False, retry=False, max_stalls=False, options=False).flags == ""


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"data": "yes"}, "data must be True or False"),
        ({"max_stalls": 3}, "max_stalls must be True or False"),
        ({"options": None}, "options must be True or False"),
        ({"reset_counts": "no"}, "reset_counts must be True, False or None"),
        ({"run_at": "later"}, "run_at must be True, False, 'if_later' or 'if_earlier'"),
        ({"retry": "attempts"}, "retry must be True, False, or a set"),
        ({"retry": {"delay"}}, "retry must be True, False, or a set"),
    ],
)
def test_other_values_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=message) as refused:
        Update(**given)

    assert refused.value.option == "on_same_id"
