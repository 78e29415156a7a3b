"""Work that the candidates of a grid share; each file registers a family of estimators."""

from mercer.selection.sharing import (  # noqa: F401  families register themselves
    cut_from_largest,
    gram,
    ridge,
    steps,
    svm,
)
from mercer.selection.sharing.base import Group, Judged, Stop, Stopped, groups, register

__all__ = ["Group", "Judged", "Stop", "Stopped", "groups", "register"]
