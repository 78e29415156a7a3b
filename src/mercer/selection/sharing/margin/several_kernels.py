"""Points of several kernels, whose matrices lie on a card together: all folds of all at once.

The programmes of one kernel, folds times costs, fill a third of a card. So kernels do not follow
one another there: as many matrices as have room are made, and what is asked of all of them is one
descent.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from mercer.gram import Source
from mercer.gram.build import descends_beside_others, is_kept
from mercer.gram.sizes import dense_bytes
from mercer.selection.sharing.base import Group, Judged, Stop
from mercer.selection.sharing.margin.asking import answer
from mercer.selection.sharing.margin.group import Margins

_COPIES = 6  # of answers: bounds, tubes and rows of programmes, and products that confirm them


class SeveralKernels(Group):
    """Points of several kernels on the same folds.

    Parameters
    ----------
    groups : sequence of Margins
        The points of each kernel, whose matrices stay on a device.
    """

    def __init__(self, groups: Sequence[Margins]) -> None:
        self.groups = groups
        self.points = tuple(point for group in groups for point in group.points)
        self.units = (tuple(fold for unit in groups[0].units for fold in unit),)
        self.size = sum(group.answer_bytes(len(self.units[0])) for group in groups)

    @property
    def kind(self) -> str:
        """Name of what is shared: that of each of them."""
        return self.groups[0].kind

    def prepare(self) -> None:
        """Evaluate all kernels."""
        for group in self.groups:
            group.prepare()

    def release(self) -> None:
        """Forget the matrices."""
        for group in self.groups:
            group.release()

    def judge(self, unit: int, stop: Stop) -> dict[tuple[int, int], Judged]:
        """Solve for all settings of all kernels and folds."""
        started = time.perf_counter()
        asked = [
            (group, one)
            for group in self.groups
            for fold in self.units[unit]
            for one in group.ask(fold)
        ]
        found = answer([one for _, one in asked], stop)
        count = sum(len(one.members) for _, one in asked)
        seconds = (time.perf_counter() - started) / max(1, count)
        judged: dict[tuple[int, int], Judged] = {}
        for (group, one), value in zip(asked, found, strict=True):
            judged |= group.tell(one, value, seconds, stop)
        return judged


def side_by_side(groups: Sequence[Margins]) -> list[Group]:
    """Take kernels together whose matrices have room on a device beside one another.

    Parameters
    ----------
    groups : sequence of Margins
        The points of each kernel.
    """
    found: list[Group] = []
    together: list[Margins] = []
    for group in groups:
        source = group.source
        if source is None or not group.stays or not _descends(group, source):
            found.append(group)
            continue
        others = sum(float(dense_bytes(source.n, source.dtype)) for _ in together)
        beside = others + sum(_programme_bytes(one) for one in [*together, group])
        alike = not together or group.units == together[0].units
        if together and not (alike and is_kept(source, beside)):
            found.append(_joined(together))
            together = []
        together.append(group)
    return [*found, *([_joined(together)] if together else [])]


def _joined(groups: Sequence[Margins]) -> Group:
    return SeveralKernels(groups) if len(groups) > 1 else groups[0]


def _descends(group: Margins, source: Source) -> bool:
    """Return whether programmes of a kernel run on the device where its matrix stays."""
    smallest = min(len(group.task.splits[fold][0]) for (fold,) in group.units)
    return descends_beside_others(source, smallest)


def _programme_bytes(group: Margins) -> float:
    """Return what programmes of all folds take on the device beside the matrix."""
    return _COPIES * group.answer_bytes(len(group.units))
