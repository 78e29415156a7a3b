"""Independent box programmes that share a Gram: pairs of classes, one against the rest, folds.

They are asked together so that a solver may look at the shared matrix once for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from mercer.problems.margin.box_qp import BoxQP, Dual


@dataclass(frozen=True, eq=False)
class Many:
    """Box programmes to be answered together.

    Attributes
    ----------
    problems : tuple of BoxQP
        Each with its own box; their Grams are parts of one (`PartGram`), or that itself.
    """

    problems: tuple[BoxQP, ...]


@dataclass(frozen=True, eq=False)
class Duals:
    """An answer to `Many`.

    Attributes
    ----------
    parts : tuple of Dual
        The answer to each programme.
    """

    parts: tuple[Dual, ...]
