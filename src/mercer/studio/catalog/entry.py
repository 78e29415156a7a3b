"""One machine of the studio: for which tasks, with which controls, drawn how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mercer import machines
from mercer.array_types import Array
from mercer.studio.catalog.parameters import Parameter
from mercer.studio.drawing.curves import CurveOf
from mercer.studio.drawing.fitted import Rows
from mercer.studio.drawing.layers import LayerOf
from mercer.studio.drawing.surfaces import SurfaceOf
from mercer.studio.reasons.sums import ReasonOf

FINEST = 400  # points a side of the finest grid

Fit = Callable[[Any, Rows], Any]


def with_targets(machine: Any, rows: Rows) -> Any:
    """Fit to rows and labels."""
    return machine.fit(rows.X, rows.y)


def without_targets(machine: Any, rows: Rows) -> Any:
    """Fit to rows alone."""
    return machine.fit(rows.X)


def with_indicators(machine: Any, rows: Rows) -> Any:
    """Fit to rows and a second view of them: which class each belongs to."""
    labels: Array = rows.y if rows.y is not None else np.zeros(len(rows.X))
    return machine.fit(rows.X, (labels[:, None] == np.unique(labels)).astype(float))


@dataclass(frozen=True)
class Entry:
    """A machine that the studio offers.

    Attributes
    ----------
    name : str
        Of the class in `mercer`.
    title, words : str
        For people.
    tasks : tuple of str
        What it is for.
    surface : callable
        What is drawn in the plane.
    layers : tuple of callables
        What is drawn over it.
    curve : callable or None
        What is drawn of regression along one axis.
    parameters : tuple of Parameter
        The controls.
    kernel : str or None
        The kernel to begin with; None for machines without one.
    kernel_name : str
        The parameter that the kernel is passed by.
    fit : callable
        How it is fitted.
    tune : tuple of str
        The two parameters of its grid; empty where no score judges it.
    reason : callable or None
        Takes its answer at one row apart; None where there is nothing to take apart.
    proves : bool
        Whether its gap can be followed while it falls.
    partly : bool
        Whether it learns from points without a label, too.
    fixed : tuple of pairs
        Names and values of parameters that have no control.
    finest : int
        Points a side of the finest surface, fewer where the answer is dear.
    """

    name: str
    title: str
    words: str
    tasks: tuple[str, ...]
    surface: SurfaceOf
    layers: tuple[LayerOf, ...]
    parameters: tuple[Parameter, ...] = ()
    curve: CurveOf | None = None
    kernel: str | None = None
    kernel_name: str = "kernel"
    fit: Fit = with_targets
    tune: tuple[str, ...] = ()
    reason: ReasonOf | None = None
    proves: bool = False
    partly: bool = False
    fixed: tuple[tuple[str, Any], ...] = ()
    finest: int = FINEST

    @property
    def kind(self) -> type:
        """The class."""
        found: type = getattr(machines, self.name)
        return found

    def parameter(self, name: str) -> Parameter | None:
        """Return a parameter by its name, or None."""
        return next((one for one in self.parameters if one.name == name), None)

    def described(self) -> dict[str, Any]:
        """Return what the page needs to know."""
        names = [getattr(one, "func", one).__name__ for one in (self.surface, *self.layers)]
        return {
            "name": self.name,
            "title": self.title,
            "words": self.words,
            "tasks": self.tasks,
            "kernel": self.kernel is not None,
            "default_kernel": self.kernel,
            "parameters": [one.described() for one in self.parameters],
            "layers": names,
            "why": self.reason is not None,
            "prove": self.proves,
            "tune": self.tune,
            "partly_labelled": self.partly,
        }


classifier = partial(Entry, tasks=("classes",))
