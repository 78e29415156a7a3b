"""Where each machine holds its vectors: read as functions, and put back when there are fewer.

A machine that predicts by sums over vectors has a holder here. It reads the functions, and writes
the vectors kept, with all fitted attributes that follow from them, into a copy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from mercer.array_types import Array, Points
from mercer.expression import Expression
from mercer.gram import Source, exact
from mercer.gram.source import KernelExpansion
from mercer.kernels import Linear
from mercer.kernels.base import is_proven
from mercer.machines.compression.pursuit import Functions, Kept
from mercer.machines.margin.multiclass import ByClass
from mercer.machines.online.kernel_stream import KernelStream
from mercer.machines.projection.inversion import Impossible, Iterated
from mercer.machines.projection.reduced_subspace import ReducedSubspace
from mercer.machines.projection.subspace import PointSubspace
from mercer.points import is_objects, is_sparse, take

_NO_PREIMAGES = (
    "PCA: a compressed machine has no training points to look for pre-images from; use the machine "
    "it was made of, or fit with preimage='learned'"
)


class Holder(ABC):
    """A way to read and replace the vectors of a machine."""

    @abstractmethod
    def read(self, machine: Any) -> Functions | None:
        """Return the functions; None if they are not held by vectors."""

    @abstractmethod
    def write(self, machine: Any, f: Functions, kept: Kept) -> None:
        """Put vectors in the place of those that were read."""

    @abstractmethod
    def values(self, machine: Any, X: Any) -> Array:
        """Return the functions at rows: (n, k)."""


class InExpansion(Holder):
    """Machines with an `_expansion`."""

    def read(self, machine: Any) -> Functions | None:
        """Read it, class by class where it is held so."""
        held = machine._expansion
        if isinstance(held, KernelExpansion):
            return Functions(_source(machine, held.expression, held.points), held.coef)
        if isinstance(held, ByClass) and all(
            isinstance(b, KernelExpansion) for b, _ in held.blocks
        ):
            return _of_pairs(machine, held)
        return None

    def write(self, machine: Any, f: Functions, kept: Kept) -> None:
        """Replace the vectors, and the coefficients that are shown."""
        held = machine._expansion
        if isinstance(held, KernelExpansion):
            machine._expansion = replace(held, points=kept.vectors, coef=kept.coef)
        else:
            machine._expansion = replace(held, blocks=_blocks(held, f, kept))
        self.show(machine, f, kept)

    def show(self, machine: Any, f: Functions, kept: Kept) -> None:
        """Write the public coefficients: one row for each vector."""
        machine.dual_coef_ = kept.coef.copy()

    def values(self, machine: Any, X: Any) -> Array:
        """Evaluate the expansion."""
        return np.asarray(machine._values(X))


class OfRidge(InExpansion):
    """`KernelRidge`."""

    def show(self, machine: Any, f: Functions, kept: Kept) -> None:
        """Coefficients; residuals of left out rows belong to the fit alone."""
        coef = kept.coef
        machine.dual_coef_ = coef.copy() if np.ndim(machine.intercept_) else coef[:, 0].copy()
        machine.__dict__.pop("loo_residuals_", None)


class OfLogistic(InExpansion):
    """`LogisticRegression`."""

    def show(self, machine: Any, f: Functions, kept: Kept) -> None:
        """Coefficients, and weights of columns."""
        super().show(machine, f, kept)
        machine.__dict__.pop("_walk", None)
        if isinstance(machine.kernel_, Linear):
            machine._weights = np.asarray(kept.vectors.T @ kept.coef, dtype=np.float64)


class OfNearestMean(InExpansion):
    """`NearestMean`, whose expansion is twice the means."""

    def show(self, machine: Any, f: Functions, kept: Kept) -> None:
        """Coefficients of the means."""
        machine.dual_coef_ = kept.coef / 2


class OfMargin(InExpansion):
    """Support vector machines."""

    def show(self, machine: Any, f: Functions, kept: Kept) -> None:
        """Support vectors by the rows they are, or began at, in the order of the rows."""
        held, coef = machine._expansion, kept.coef
        classes = None
        if isinstance(held, ByClass):  # a vector has coefficients against the other classes only
            classes = class_numbers(held, f, kept)
            columns = np.stack([columns for _, columns in held.blocks])
            coef = np.take_along_axis(coef, columns[classes], axis=1)
        places = support_places(machine, take(f.source.X, kept.origin), classes)
        order = np.argsort(places, kind="stable")
        machine.dual_coef_ = coef[order, 0] if machine.dual_coef_.ndim == 1 else coef[order]
        if "_support_codes" in machine.__dict__:
            machine._support_codes = machine._support_codes[places[order]]
            counts = np.bincount(machine._support_codes, minlength=len(machine.classes_))
            machine.n_support_ = counts
        machine.support_ = machine.support_[places[order]]
        machine.support_vectors_ = take(kept.vectors, order)


class OfBall(OfMargin):
    """`EnclosingBall`: the length of the centre follows from its vectors."""

    def show(self, machine: Any, f: Functions, kept: Kept) -> None:
        """Support vectors, and the centre."""
        super().show(machine, f, kept)
        held = machine._expansion
        source = Source(held.expression, held.points)
        machine._centre = float(held.coef[:, 0] @ (exact(source) @ held.coef)[:, 0])
        machine.center_norm_ = float(np.sqrt(max(machine._centre, 0.0)))


class OfPCA(Holder):
    """`PCA` of a kernel: directions and the mean."""

    def read(self, machine: Any) -> Functions | None:
        """Read the directions and, as one more function, the mean."""
        held = machine._subspace
        if isinstance(held, ReducedSubspace):
            table = np.column_stack([held.coef, held.mean])
        elif isinstance(held, PointSubspace):
            table = np.column_stack([held.coef, held.shares])
        else:
            return None
        return Functions(held.source, table)

    def write(self, machine: Any, f: Functions, kept: Kept) -> None:
        """Replace the subspace; pre-images that start from training points are gone."""
        held, part = machine._subspace, kept
        source = replace(held.source, X=part.vectors)
        machine._subspace = ReducedSubspace(source, part.coef[:, :-1], part.coef[:, -1], held.total)
        machine.dual_coef_ = part.coef[:, :-1].copy()
        if isinstance(machine._inverse, Iterated):
            machine._inverse = Impossible(_NO_PREIMAGES)

    def values(self, machine: Any, X: Any) -> Array:
        """Return the scores."""
        return np.asarray(machine.transform(X))


class OfPerceptron(Holder):
    """`Perceptron` of a kernel: its mistakes."""

    def read(self, machine: Any) -> Functions | None:
        """Read the last function, or the mean."""
        held = machine._stream
        if not isinstance(held, KernelStream):
            return None
        if machine.answer == "voted":
            raise ValueError(
                "compress: votes are those of all functions on the way, not of one; fit with "
                "answer='last' or 'averaged'"
            )
        memory = held.memory
        coef = memory.mean[0] if machine.answer == "averaged" else memory.coef
        return Functions(_source(machine, held.expression, held.points), coef)

    def write(self, machine: Any, f: Functions, kept: Kept) -> None:
        """Replace the memory: what goes on from here goes on from the compressed function."""
        held, part = machine._stream, kept
        old = held.memory
        bias = old.mean[1] if machine.answer == "averaged" else old.bias
        memory = replace(
            old,
            coef=part.coef.copy(),
            late=np.zeros_like(part.coef),
            bias=bias.copy(),
            late_bias=np.zeros_like(bias),
            age=old.age[part.origin],
            squares=Source(held.expression, part.vectors).diag(),
            one_by_one=False,
            log=None,
        )
        machine._stream = KernelStream(held.expression, part.vectors, memory, held.longest)

    def values(self, machine: Any, X: Any) -> Array:
        """Return the scores."""
        scores = np.asarray(machine.decision_function(X))
        return scores[:, None] if scores.ndim == 1 else scores


def _source(machine: Any, expression: Expression, points: Points) -> Source:
    return Source(expression, points, np.float64, is_proven(machine.kernel_))


# --- functions between pairs of classes: a vector has a part in those of its own class -----------


def _of_pairs(machine: Any, held: ByClass) -> Functions:
    """Return all functions over the vectors of all classes."""
    blocks: Any = held.blocks
    tables, masks = [], []
    for block, columns in blocks:
        table = np.zeros((len(block.coef), len(held.offset)))
        mask = np.zeros(table.shape, dtype=bool)
        table[:, columns], mask[:, columns] = block.coef, True
        tables.append(table)
        masks.append(mask)
    points = stacked([block.points for block, _ in blocks])
    source = _source(machine, blocks[0][0].expression, points)
    return Functions(source, np.concatenate(tables), np.concatenate(masks))


def _blocks(held: ByClass, f: Functions, kept: Kept) -> Any:
    """Return the vectors of each class with their coefficients."""
    numbers, found = class_numbers(held, f, kept), []
    for c, (block, columns) in enumerate(held.blocks):
        own = np.flatnonzero(numbers == c)
        points, coef = take(kept.vectors, own), kept.coef[np.ix_(own, columns)]
        found.append((replace(block, points=points, coef=coef), columns))  # type: ignore[type-var]
    return tuple(found)


def class_numbers(held: ByClass, f: Functions, kept: Kept) -> Array:
    """Return the class of each vector, which the functions that it may be in tell."""
    assert f.allowed is not None
    numbers = {}
    for c, (_, columns) in enumerate(held.blocks):
        mask = np.zeros(len(held.offset), dtype=bool)
        mask[columns] = True
        numbers[mask.tobytes()] = c
    return np.array([numbers[mask.tobytes()] for mask in f.allowed[kept.origin]], dtype=np.int64)


def stacked(parts: list[Points]) -> Points:
    """Put rows below rows, of whatever kind they are."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return sparse.csr_array(sparse.vstack(parts, format="csr"))


# --- which support vectors are these? ------------------------------------------------------------


def support_places(machine: Any, rows: Points, classes: Array | None) -> Array:
    """Return which of the support vectors each row is: (m,).

    An expansion holds equal rows of a class once, the support vectors each copy.
    """
    keys = row_keys(machine.support_vectors_)
    codes = np.zeros(len(keys), int) if classes is None else machine._support_codes
    numbered = list(enumerate(zip(codes.tolist(), keys, strict=True)))
    places = {key: i for i, key in reversed(numbered)}
    asked = np.zeros(rows.shape[0], int) if classes is None else classes
    wanted = zip(asked.tolist(), row_keys(rows), strict=True)
    return np.array([places[key] for key in wanted], dtype=np.int64)


def row_keys(X: Points) -> list[Any]:
    """Return something to find each row by: equal rows have equal keys."""
    if is_objects(X):
        return list(X)
    if is_sparse(X):
        X = X.tocsr()
        pairs = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        return [(X.indices[a:b].tobytes(), X.data[a:b].tobytes()) for a, b in pairs]
    return [row.tobytes() for row in np.ascontiguousarray(X) + 0.0]  # -0.0 is 0.0
