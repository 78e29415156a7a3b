"""Who shares what: each family of machines makes its own groups, the rest is refitted.

A family is registered for exact types: a subclass may fit in a way of its own, so it is refitted.
Those that are registered for what machines say of themselves (`machines/base/sharing.py`) are asked
for all machines that say so: `Sharing` before others, what is listed in `shares` after. Before all
of them, families of `Approximation` are asked for machines that may have features for a kernel. Of
several families for one type, the last to be registered is asked first; points that it leaves out
go to the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mercer.approximation import Approximation
from mercer.machines.base.sharing import SharedMatrix, Sharing, says_how_it_shares, shares_of
from mercer.selection.running.task import Point, Task
from mercer.selection.sharing.base import Group, Judged, Stop
from mercer.selection.sharing.refit import refits

Family = Callable[[Task, Sequence[Point]], list[Group]]
"""Makes groups of those points it can share work for; positions are those of the points given."""

_FAMILIES: dict[type, list[Family]] = {}


def register(*kinds: type) -> Callable[[Family], Family]:
    """Make a function one that groups points of machines of these types."""

    def keep(family: Family) -> Family:
        for kind in kinds:
            _FAMILIES.setdefault(kind, []).insert(0, family)
        return family

    return keep


def groups(task: Task, points: Sequence[Point]) -> list[Group]:
    """Group points by what they share.

    Parameters
    ----------
    task : Task
        What is tuned.
    points : sequence of dict
        Settings to judge.

    Returns
    -------
    list of Group
        Every point is in exactly one of them, by its position in `points`.
    """
    made: list[Group] = []
    rest = list(range(len(points)))
    for family in _families(task.machine):
        if not rest:
            break
        found = family(task, [points[position] for position in rest])
        if len(rest) < len(points):
            found = [_Renumbered(group, rest) for group in found]
        made += found
        covered = {position for group in found for position in group.points}
        rest = [position for position in rest if position not in covered]
    return [*made, *refits(task, points, rest)]


def _families(machine: Any) -> list[Family]:
    by_contract = _FAMILIES.get(Sharing, []) if says_how_it_shares(machine) else []
    ways = [way for way in shares_of(machine) if isinstance(way, SharedMatrix)]
    listed = [family for way in shares_of(machine) for family in _FAMILIES.get(type(way), [])]
    by_features = _FAMILIES.get(Approximation, []) if by_contract or ways else []
    return [*by_features, *by_contract, *_FAMILIES.get(type(machine), []), *listed]


class _Renumbered(Group):
    """A group made for some of the points, with their positions among all of them."""

    def __init__(self, group: Group, positions: Sequence[int]) -> None:
        self.group, self.positions = group, list(positions)
        self.points = tuple(self.positions[position] for position in group.points)
        self.units, self.size, self.spreads = group.units, group.size, group.spreads

    @property
    def kind(self) -> str:
        return self.group.kind

    def prepare(self) -> None:
        self.group.prepare()

    def judge(self, unit: int, stop: Stop) -> dict[tuple[int, int], Judged]:
        found = self.group.judge(unit, stop)
        return {(self.positions[k], fold): judged for (k, fold), judged in found.items()}

    def release(self) -> None:
        self.group.release()
