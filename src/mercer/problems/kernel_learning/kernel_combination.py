"""Which sum of kernels suits a machine best? Multiple kernel learning with weights on a simplex.

A machine that is a box programme has, for K = sum_m d_m f_m K_m, the optimal value

    J(d) = max over b of p'b - b'K(d)b/2 - epsilon'|b|,

a convex function of d (a maximum of linear ones). The best weights minimise it over d >= 0 of sum
1; for several programmes (pairs of classes, several targets) that share the weights, its sum over
them. Every b that the boxes admit bounds the minimum from below, since a minimum of a maximum is at
least the maximum of the minimum:

    p'b - epsilon'|b| - max_m f_m b'K_m b/2 <= min J <= J(d).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram
from mercer.problems.margin.box_qp import BoxQP
from mercer.problems.margin.many import Duals, Many


@dataclass(frozen=True, eq=False)
class WeightedDuals:
    """An answer to a `KernelCombination`.

    Attributes
    ----------
    weights : (kernels,) array
        d: nonnegative, of sum 1.
    duals : Duals
        The answers to the programmes on the weighted sum.
    """

    weights: Array
    duals: Duals


@dataclass(frozen=True, eq=False)
class KernelCombination:
    """The weights of kernels for which box programmes have the smallest optimal value.

    Attributes
    ----------
    grams : tuple of Gram
        K_1, ..., K_m on the same rows.
    factors : (m,) array
        What each is multiplied by first, f.
    question : callable
        Writes the programmes (`BoxQP` or `Many`) on a Gram of those rows. Boxes, linear terms and
        what is added to the diagonal must not depend on the Gram.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.problems import svm
    >>> from mercer.solvers import solve
    >>> y = np.array([1.0, 1.0, -1.0, -1.0])
    >>> grams = (PrecomputedGram(np.eye(4)), PrecomputedGram(np.outer(y, y)))
    >>> question = lambda gram: svm.svc(gram, y, np.full(4, 10.0))
    >>> solve(KernelCombination(grams, np.ones(2), question)).value.weights.round(6)
    array([0., 1.])
    """

    grams: tuple[Gram, ...]
    factors: Array
    question: Callable[[Gram], BoxQP | Many]

    def programmes(self, gram: Gram) -> tuple[BoxQP, ...]:
        """Write all programmes on a Gram."""
        asked = self.question(gram)
        return asked.problems if isinstance(asked, Many) else (asked,)

    def products(self, columns: Array, grams: tuple[Gram, ...] | None = None) -> Array:
        """Return f_m K_m times columns (n, k) for every kernel: (m, n, k)."""
        grams = self.grams if grams is None else grams
        parts = (f * (gram @ columns) for f, gram in zip(self.factors, grams, strict=True))
        return np.stack([np.asarray(part) for part in parts])


def on_all_rows(programmes: tuple[BoxQP, ...], coefs: list[Array], n: int) -> Array:
    """Put the variables of all programmes side by side, one row for each row of the Gram."""
    columns = np.zeros((n, len(programmes)))
    for k, (programme, b) in enumerate(zip(programmes, coefs, strict=True)):
        index = programme.unwrapped.index
        columns[:, k] = b if index is None else np.bincount(index, b, n)
    return columns


def on_own_rows(programme: BoxQP, column: Array) -> Array:
    """Read the rows of one programme from a column of all rows."""
    index = programme.unwrapped.index
    return column if index is None else column[index]
