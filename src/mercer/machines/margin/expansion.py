"""Decision values of many classes: a support vector only meets the pairs its class is in.

With k classes there are k (k - 1) / 2 functions, but a support vector has a coefficient in only
k - 1 of them. Evaluated class by class, the products are k / 2 times smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mercer.array_types import Array, Points
from mercer.gram import Expansion, Gram, Source
from mercer.gram.function import RKHSFunction
from mercer.gram.source import KernelExpansion
from mercer.gram.storage.factored import FeatureExpansion
from mercer.machines.margin.multiclass import OneVsOne, Scheme
from mercer.points import row_count


@dataclass(frozen=True, eq=False)
class ByClass(Expansion):
    """Functions of pairs of classes.

    Attributes
    ----------
    blocks : tuple of (Expansion, int array)
        For each class, the expansion over its points and the functions its columns belong to.
    offset : (k,) array
        The constant of each function.
    """

    blocks: tuple[tuple[Expansion, Array], ...]
    offset: Array

    def __call__(self, Z: Points) -> Array:
        """Evaluate class by class."""
        values = np.tile(self.offset, (row_count(Z), 1))
        for expansion, columns in self.blocks:
            values[:, columns] += expansion(Z)
        return values

    def plus(self, offset: Array) -> ByClass:
        """Add to the constants."""
        return replace(self, offset=self.offset + offset)


def expand(gram: Gram, scheme: Scheme, coefs: Sequence[Array], table: Array) -> Expansion:
    """Return the functions of all parts; `table` has their coefficients as `collect` puts them."""
    if not isinstance(scheme, OneVsOne):
        return gram.expand(table)
    if gram.source is not None:
        blocks = tuple(_block(gram.source, scheme, c, table) for c in range(scheme.count))
        return ByClass(blocks, np.zeros(len(coefs)))
    pairs = list(zip(scheme.parts(), coefs, strict=True))
    if gram.factor is not None:
        weights = [gram.factor[part.rows].T @ coef for part, coef in pairs]
        return RKHSFunction(gram, None, np.column_stack(weights)).expand()
    full = np.zeros((gram.shape[0], len(coefs)))
    for i, (part, coef) in enumerate(pairs):
        full[part.rows, i] = coef
    return gram.expand(full)


def squared_norms(expansion: Expansion) -> Array | None:
    """Return |w|^2 of every function; None where only a matrix of the points was ever given.

    |w|^2 = sum_i c_i (f(x_i) - b), over the points of the expansion.
    """
    if isinstance(expansion, FeatureExpansion):
        return np.asarray(np.square(expansion.weights).sum(axis=0))
    if isinstance(expansion, KernelExpansion):
        return np.asarray((expansion.coef * _without_constant(expansion, expansion)).sum(axis=0))
    if not isinstance(expansion, ByClass):
        return None
    squared = np.zeros(len(expansion.offset))
    for block, columns in expansion.blocks:
        if isinstance(block, KernelExpansion):
            values = _without_constant(expansion, block)[:, columns]
            squared[columns] += (block.coef * values).sum(axis=0)
    return squared


def _without_constant(expansion: ByClass | KernelExpansion, at: KernelExpansion) -> Array:
    return expansion(at.points) - expansion.offset


def _block(source: Source, scheme: OneVsOne, c: int, table: Array) -> tuple[Expansion, Array]:
    run = scheme.run(c)
    return source.only(run).expand(table[run]), scheme.columns(c)
