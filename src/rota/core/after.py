"""What a job comes after: which jobs, and what their ends mean for it."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, Literal

import msgspec

from rota.core.job import JobRef
from rota.errors import InvalidOption

#: Jobs that one job may come after.
MAX_PARENTS: Final = 10_000
IfGone = Literal["refused", "satisfied"]


class Parent(msgspec.Struct, frozen=True):
    """One job that must end first: well, unless it may fail. One that is no longer kept is refused unless known."""

    ref: JobRef
    may_fail: bool = False
    if_gone: IfGone = "refused"
    #: What its result takes the place of in the dependent's arguments; "" where that is not wanted.
    token: str = ""

    @property
    def name(self) -> str:
        """What the dependent calls it, in the store and in its reasons."""
        return str(self.ref)

    @property
    def tie(self) -> str:
        """As the scripts take it."""
        return f"{self}={self.token}" if self.token else str(self)

    def __str__(self) -> str:
        return f"?{self.name}" if self.may_fail else self.name


def may_fail(job: Any) -> Parent:
    """`after=[may_fail(job)]`: starts when the job has ended, however it ended."""
    return msgspec.structs.replace(to_parent(job), may_fail=True)


def known(job: Any, *, if_gone: IfGone) -> Parent:
    """`after=[known(job, if_gone="satisfied")]`: a job that is no longer kept counts as one that succeeded."""
    if if_gone not in ("refused", "satisfied"):
        raise InvalidOption("after", f"if_gone is refused or satisfied, not {if_gone!r}")
    return msgspec.structs.replace(to_parent(job), if_gone=if_gone)


def to_parent(job: Any) -> Parent:
    """From a handle, a JobRef, `queue:id` or `queue:id@run`."""
    if isinstance(job, Parent):
        return job
    ref = getattr(job, "ref", job)
    if isinstance(ref, str):
        return Parent(JobRef.parse(ref))
    if isinstance(ref, JobRef):
        return Parent(ref)
    raise InvalidOption("after", f"takes jobs, their ids, may_fail(...) or known(...), not {job!r}")


def checked_parents(after: Any) -> tuple[Parent, ...]:
    """Each once; one that is named twice must succeed if either says so."""
    if isinstance(after, str) or not hasattr(after, "__iter__"):
        raise InvalidOption("after", f"takes a list of jobs, not {after!r}")
    parents: dict[str, Parent] = {}
    for item in after:
        parent = to_parent(item)
        earlier = parents.get(parent.name)
        if earlier is None or earlier.may_fail:
            parents[parent.name] = parent
    if len(parents) > MAX_PARENTS:
        raise InvalidOption("after", f"at most {MAX_PARENTS:,} jobs, not {len(parents):,}")
    return tuple(parents.values())


def in_layers(names: Sequence[str], needed: Sequence[Sequence[str]]) -> list[list[int]]:
    """The places of a batch in the order in which its jobs are to be made: whatever others of it come after, first.

    `names` are the jobs' own, "" where nobody chose one; `needed` what each comes after, of which some may be in the
    batch. Raises InvalidOption where they come after each other in a circle.
    """
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        if name:
            places.setdefault(name, []).append(place)
    graph = TopologicalSorter[int]()
    for place, wanted in enumerate(needed):
        # One that comes after a job of its own id means the run that was there before.
        graph.add(place, *(other for name in wanted if name != names[place] for other in places.get(name, ())))
    try:
        graph.prepare()
    except CycleError as error:
        around: list[int] = error.args[1]
        circle = ", ".join(names[place] for place in around)
        raise InvalidOption("after", f"these come after each other in a circle: {circle}") from error
    layers: list[list[int]] = []
    while graph.is_active():
        layers.append(sorted(graph.get_ready()))
        graph.done(*layers[-1])
    return layers
