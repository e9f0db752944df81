"""The catalogue of seeded bugs keeps up with the code. `make mutants` runs the bugs themselves."""

from __future__ import annotations

import pytest

from tests.mutants.catalogue import MUTANTS, Mutant
from tests.mutants.run import ROOT, mutated

LEAST = 25


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_bug_can_be_seeded_and_names_checks_that_exist(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text()

    assert mutated(mutant, text) != text
    for check in mutant.checks:
        assert (ROOT / check.split()[0]).exists(), check


def test_there_are_enough_bugs_and_each_has_a_name() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= LEAST
