"""How much of a grid's work is one piece: a file for each family of machines."""

from mercer.selection.sharing import (  # noqa: F401  families register themselves
    components,
    decompositions,
    features,
    gram,
    neighbours,
    pipeline,
)
from mercer.selection.sharing.base import Group, Judged, Stop, Stopped
from mercer.selection.sharing.margin import grouping as margin  # noqa: F401  the same
from mercer.selection.sharing.ridge import group as ridge  # noqa: F401  the same
from mercer.selection.sharing.share import groups, register

__all__ = ["Group", "Judged", "Stop", "Stopped", "groups", "register"]
