"""Job dependencies: the parents of a job, and how each outcome affects it."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, Literal

import msgspec

from rota.core.ids import JobRef
from rota.errors import InvalidOption

#: Parents of one job.
MAX_PARENTS: Final = 10_000
IfGone = Literal["refused", "satisfied"]


class Parent(msgspec.Struct, frozen=True):
    """A job that must end before its dependent starts: successfully, unless `may_fail`."""

    ref: JobRef
    may_fail: bool = False
    #: What happens if the parent is no longer kept: the enqueue is refused, or the dependency counts as satisfied.
    if_gone: IfGone = "refused"
    #: Text in the dependent's arguments that the parent's result replaces; "" if the result is not needed.
    placeholder: str = ""

    @property
    def name(self) -> str:
        """`queue:id@run`: the parent's name in the store and in messages."""
        return str(self.ref)

    @property
    def script_argument(self) -> str:
        """The parent as an argument of the scripts."""
        return f"{self}={self.placeholder}" if self.placeholder else str(self)

    def __str__(self) -> str:
        return f"?{self.name}" if self.may_fail else self.name


def may_fail(job: Any) -> Parent:
    """`after=[may_fail(job)]`: the dependent starts when the parent has ended, with any outcome."""
    return msgspec.structs.replace(to_parent(job), may_fail=True)


def known(job: Any, *, if_gone: IfGone) -> Parent:
    """`after=[known(job, if_gone="satisfied")]`: a parent that is no longer kept counts as completed."""
    if if_gone not in ("refused", "satisfied"):
        raise InvalidOption("after", f"if_gone must be 'refused' or 'satisfied', not {if_gone!r}")
    return msgspec.structs.replace(to_parent(job), if_gone=if_gone)


def to_parent(job: Any) -> Parent:
    """Returns the parent for a job handle, a JobRef, `queue:id` or `queue:id@run`. Raises InvalidOption."""
    if isinstance(job, Parent):
        return job
    ref = getattr(job, "ref", job)
    if isinstance(ref, str):
        return Parent(JobRef.parse(ref))
    if isinstance(ref, JobRef):
        return Parent(ref)
    raise InvalidOption("after", f"takes jobs, their ids, may_fail(...) or known(...), not {job!r}")


def checked_parents(after: Any) -> tuple[Parent, ...]:
    """Returns the parents without duplicates. A parent named twice may fail only if both say so."""
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


def dependency_layers(names: Sequence[str], needed: Sequence[Sequence[str]]) -> list[list[int]]:
    """Returns the indexes of a batch in layers, parents before their dependents. Raises InvalidOption for a cycle.

    `names` are the jobs' own names, "" for generated ids; `needed` the names of each job's parents, in the batch or
    not.
    """
    indexes: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        if name:
            indexes.setdefault(name, []).append(index)
    graph = TopologicalSorter[int]()
    for index, parents in enumerate(needed):
        # A parent with the job's own id is an earlier run of that id.
        graph.add(index, *(parent for name in parents if name != names[index] for parent in indexes.get(name, ())))
    try:
        graph.prepare()
    except CycleError as error:
        cycle: list[int] = error.args[1]
        raise InvalidOption("after", f"dependency cycle: {', '.join(names[index] for index in cycle)}") from error
    layers: list[list[int]] = []
    while graph.is_active():
        layers.append(sorted(graph.get_ready()))
        graph.done(*layers[-1])
    return layers
