"""What a block must be: columns and type of the others, numbers, one target for each row."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.blocks.base import Block
from mercer.points import as_points, is_objects, is_sparse, row_count


@dataclass(frozen=True)
class Shape:
    """What all blocks have in common.

    Attributes
    ----------
    columns : int
        Columns of the rows.
    dtype : dtype
        Of their entries: float32 or float64.
    sparse : bool
        Whether rows are CSR.
    targets : int or None
        Dimensions of the targets; None where there are none.
    weights : bool
        Whether rows have weights.
    """

    columns: int
    dtype: Any
    sparse: bool
    targets: int | None
    weights: bool

    @classmethod
    def of(cls, block: Block) -> Shape:
        """Look at a block."""
        return cls(
            int(block.X.shape[1]),
            np.dtype(block.X.dtype),
            is_sparse(block.X),
            None if block.y is None else block.y.ndim,
            block.weights is not None,
        )

    def __str__(self) -> str:
        rows = f"{self.columns} columns of {'sparse ' if self.sparse else ''}{self.dtype}"
        targets = "no targets" if self.targets is None else f"targets of {self.targets} dimension"
        return f"{rows}, {targets}, {'weights' if self.weights else 'no weights'}"


def made_block(X: Any, y: Any, weights: Any, first: int, number: int) -> Block:
    """Return rows, targets and weights as a block; what is none is refused, by block and row."""
    try:
        points = as_points(X)
    except (TypeError, ValueError) as error:
        raise type(error)(f"block {number} (from row {first}): {error}") from error
    if is_objects(points):
        raise TypeError(
            f"block {number}: rows of blocks are numbers, but these are strings or lists; fit a "
            "sample that fits in memory"
        )
    _refuse_nonfinite(points, first, number)
    n = row_count(points)
    y = None if y is None else _targets(y, n, first, number)
    weights = None if weights is None else _weights(weights, n, first, number)
    return Block(points, y, weights, first)


def refuse_other_shape(block: Block, like: Shape, number: int) -> None:
    """Raise if a block differs from the first one in columns, type, targets or weights."""
    found = Shape.of(block)
    if found != like:
        raise ValueError(
            f"block {number} (from row {block.first}) has {found}, but block 0 has {like}; give "
            "all blocks the same columns and one type, e.g. X.astype('float64')"
        )


def _refuse_nonfinite(X: Any, first: int, number: int) -> None:
    values = X.data if is_sparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)) or np.isfinite(values).all():
            return
    bad = ~np.isfinite(values)
    kind = "NaN" if np.isnan(values).any() else "infinity"
    if is_sparse(X):
        place = int(np.flatnonzero(bad)[0])
        row = int(np.searchsorted(X.indptr, place, side="right")) - 1
        column = int(X.indices[place])
    else:
        row, column = (int(k) for k in np.unravel_index(int(bad.argmax()), bad.shape))
    raise ValueError(
        f"block {number} contains {kind}: {int(bad.sum())} bad value(s), the first in row {row} of "
        f"the block (row {first + row} of all), column {column}; remove those rows or fill them in"
    )


def _targets(y: Any, n: int, first: int, number: int) -> Array:
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim not in (1, 2) or len(values) != n:
        raise ValueError(
            f"block {number} (from row {first}) has {n} rows, but targets of shape {values.shape}"
        )
    missing: Array = np.zeros(n, dtype=bool)
    if values.dtype.kind == "f":
        missing = ~np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
    elif values.dtype.kind == "O":
        gaps = [v is None or (isinstance(v, float) and isnan(v)) for v in values.ravel().tolist()]
        flat = np.array(gaps, dtype=bool).reshape(values.shape)
        missing = np.asarray(flat.any(axis=tuple(range(1, values.ndim))))
    if missing.any():
        row = int(missing.argmax())
        raise ValueError(
            f"block {number}: the target of row {row} of the block (row {first + row} of all) is "
            "missing or not finite; remove that row"
        )
    return values


def _weights(weights: Any, n: int, first: int, number: int) -> Array:
    try:
        values = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"block {number}: sample weights must be numbers: {error}") from error
    if values.shape != (n,):
        raise ValueError(
            f"block {number} (from row {first}) has {n} rows, but weights of shape {values.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(values) | (values < 0))
    if len(bad):
        raise ValueError(
            f"block {number}: sample weights must be finite and nonnegative; that of row {bad[0]} "
            f"of the block (row {first + bad[0]} of all) is {values[bad[0]]}"
        )
    return values
