"""Blocks that a function gives, anew for each pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from mercer.blocks.base import Block
from mercer.blocks.checks import made_block
from mercer.blocks.local import LocalBlocks
from mercer.data.table import Table


def blocks_of(function: Callable[[], Iterable[Any]]) -> FunctionBlocks:
    """Return blocks that a function gives: called once for each pass over the rows.

    Parameters
    ----------
    function : callable
        Returns an iterator of blocks: arrays X, pairs (X, y), triples (X, y, weights) or `Block`.
        Every call must give the same blocks from the beginning.

    Returns
    -------
    FunctionBlocks
        To fit machines to.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> from mercer.blocks import blocks_of
    >>> def made():
    ...     for seed in range(5):
    ...         X = np.random.default_rng(seed).standard_normal((100, 3))
    ...         yield X, X @ [1.0, -2.0, 0.5]
    >>> KernelRidge(1e-6).fit(blocks_of(made)).coef_.round(3).tolist()
    [1.0, -2.0, 0.5]
    """
    if not callable(function):
        if hasattr(function, "__next__"):
            raise TypeError(
                "blocks_of: a generator is over after one pass, and a fit needs several; give the "
                "function that makes it: blocks_of(lambda: generate())"
            )
        raise TypeError(
            f"blocks_of takes a function that gives an iterator of blocks, not {type(function)!r}"
        )
    return FunctionBlocks(function)


class FunctionBlocks(LocalBlocks):
    """Blocks of a function that is called for each pass; see `blocks_of`."""

    def __init__(self, function: Callable[[], Iterable[Any]]) -> None:
        self.function = function
        self.n_rows = None
        self._before: Any = None
        for X, y, weights in self.parts():
            block = made_block(X, y, weights, 0, 0)
            self.n_columns, self.dtype = int(block.X.shape[1]), np.dtype(block.X.dtype)
            if isinstance(X, Table):
                self.names = tuple(X.columns)
            break
        else:
            raise ValueError("blocks_of: the function gave no blocks")

    def parts(self) -> Iterator[tuple[Any, Any, Any]]:
        """Call the function, and go through what it returns."""
        given = self.function()
        if not hasattr(given, "__iter__"):
            raise TypeError(f"blocks_of: the function must give an iterator, not {given!r:.60}")
        if hasattr(given, "__next__") and given is self._before:
            raise TypeError(
                "blocks_of: the function gave the same iterator twice, which is over after one "
                "pass; make a new one at each call"
            )
        self._before = given
        for number, part in enumerate(given):
            yield _three(part, number)


def _three(part: Any, number: int) -> tuple[Any, Any, Any]:
    """Return rows, targets and weights of what a function gave as a block."""
    if isinstance(part, Block):
        return part.X, part.y, part.weights
    if isinstance(part, tuple):
        if not 1 <= len(part) <= 3:
            raise TypeError(f"block {number} is a tuple of {len(part)}; give X, (X, y) or three")
        X, y, weights = (*part, None, None)[:3]
    else:
        X, y, weights = part, None, None
    return (X.matrix() if isinstance(X, Table) else X), y, weights
