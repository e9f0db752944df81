"""Parents of a job: how they are named, checked, and ordered within a batch."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.dependencies import (
    MAX_PARENTS,
    Parent,
    checked_parents,
    dependency_layers,
    known,
    may_fail,
    to_parent,
)
from rota.core.ids import JobRef
from rota.errors import InvalidOption

REF = JobRef("mail", "a", "000000001")


@pytest.mark.parametrize("job", [REF, str(REF), SimpleNamespace(ref=REF), Parent(REF)])
def test_a_parent_is_a_handle_a_reference_or_its_text(job: object) -> None:
    assert to_parent(job) == Parent(REF)


@pytest.mark.parametrize("job", [None, 7, b"mail:a", ["mail:a"]])
def test_anything_else_is_refused(job: object) -> None:
    with pytest.raises(InvalidOption, match="takes jobs, their ids"):
        to_parent(job)


def test_a_parent_that_may_fail_is_marked_in_the_record() -> None:
    assert str(may_fail(REF)) == "?mail:a@000000001"
    assert may_fail(REF).name == "mail:a@000000001"


def test_a_parent_whose_result_is_needed_carries_its_placeholder() -> None:
    assert Parent(REF).script_argument == "mail:a@000000001"
    assert Parent(REF, placeholder="#1#").script_argument == "mail:a@000000001=#1#"


def test_both_marks_can_be_combined() -> None:
    parent = known(may_fail("mail:a"), if_gone="satisfied")

    assert (parent.may_fail, parent.if_gone) == (True, "satisfied")


def test_only_two_answers_to_a_parent_that_is_gone_are_known() -> None:
    with pytest.raises(InvalidOption, match="must be 'refused' or 'satisfied', not 'ignored'"):
        known("mail:a", if_gone="ignored")  # type: ignore[arg-type]


@pytest.mark.parametrize("after", ["mail:a", 7, None])
def test_parents_are_a_list(after: object) -> None:
    with pytest.raises(InvalidOption, match="takes a list of jobs"):
        checked_parents(after)


@pytest.mark.parametrize("after", [[may_fail("mail:a"), "mail:a"], ["mail:a", may_fail("mail:a")]])
def test_a_parent_named_twice_may_fail_only_if_both_say_so(after: list[object]) -> None:
    assert checked_parents(after) == (Parent(JobRef("mail", "a")),)
    assert checked_parents([may_fail("mail:a"), may_fail("mail:a")]) == (Parent(JobRef("mail", "a"), may_fail=True),)


def test_the_number_of_parents_is_limited() -> None:
    parents = [f"mail:{number}" for number in range(MAX_PARENTS)]

    assert len(checked_parents([*parents, *parents])) == MAX_PARENTS
    with pytest.raises(InvalidOption, match=r"at most 10,000 jobs, not 10,001"):
        checked_parents([*parents, "mail:one-more"])


def test_a_batch_is_made_parents_first() -> None:
    names = ["q:ship", "q:pay", "q:pack", ""]
    needed = [["q:pack"], [], ["q:pay", "q:elsewhere"], ["q:ship"]]

    assert dependency_layers(names, needed) == [[1], [2], [0], [3]]


def test_independent_jobs_share_a_layer_in_their_order() -> None:
    assert dependency_layers(["", "q:a", ""], [[], [], []]) == [[0, 1, 2]]
    assert dependency_layers([], []) == []


def test_a_job_after_its_own_id_waits_for_the_earlier_run_which_is_no_cycle() -> None:
    assert dependency_layers(["q:a"], [["q:a"]]) == [[0]]


def test_a_cycle_is_refused_with_its_jobs() -> None:
    with pytest.raises(InvalidOption, match=r"dependency cycle: q:(a, q:b, q:a|b, q:a, q:b)"):
        dependency_layers(["q:a", "q:b"], [["q:b"], ["q:a"]])


@given(
    st.integers(1, 12).flatmap(
        lambda size: st.tuples(st.just(size), st.sets(st.tuples(*[st.integers(0, size - 1)] * 2)))
    )
)
def test_layers_hold_every_job_once_and_after_its_parents(graph: tuple[int, set[tuple[int, int]]]) -> None:
    size, pairs = graph
    names = [f"q:{index}" for index in range(size)]
    needed = [[names[low] for low, high in sorted(pairs) if high == index and low < high] for index in range(size)]

    layers = dependency_layers(names, needed)

    layer_of = {index: number for number, layer in enumerate(layers) for index in layer}
    assert sorted(layer_of) == list(range(size))
    assert all(layer_of[low] < layer_of[high] for low, high in pairs if low < high)
