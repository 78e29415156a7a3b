"""Answers for rows in blocks: one block after the other, results go to an array or a file.

Any fitted machine will do, wherever and however it was fitted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.resources import require_memory, rows_at_once
from mercer.rows.blocks import LocalBlocks
from mercer.rows.make_blocks import as_blocks
from mercer.rows.points import row_count, take

_ROWS = 16384  # asked about at once: more are no quicker
_COPIES = 4  # of what a row becomes on its way to an answer


def predict(machine: Any, X: Any, out: Any = None) -> Any:
    """Predict for rows in blocks.

    Parameters
    ----------
    machine : fitted machine
        Any with `predict`.
    X : RowBlocks, array, mapped array, path or function that gives blocks
        Rows, as `mercer.blocks.as_blocks` takes them.
    out : array, path or None, default=None
        Where answers go: an array of the right shape (mapped or not), a file .npy or .csv, or a new
        array.

    Returns
    -------
    array or path
        `out`, or the new array.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> from mercer.blocks import ArrayBlocks
    >>> from mercer.streaming import predict
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> machine = KernelRidge(1e-6).fit(X, X @ [1.0, 2.0])
    >>> predict(machine, ArrayBlocks(X, rows=100)).shape
    (500,)
    """
    return apply(machine, "predict", X, out)


def transform(machine: Any, X: Any, out: Any = None) -> Any:
    """Transform rows in blocks; see `predict`."""
    return apply(machine, "transform", X, out)


def decision_function(machine: Any, X: Any, out: Any = None) -> Any:
    """Evaluate decisions for rows in blocks; see `predict`."""
    return apply(machine, "decision_function", X, out)


def predict_proba(machine: Any, X: Any, out: Any = None) -> Any:
    """Return probabilities for rows in blocks; see `predict`."""
    return apply(machine, "predict_proba", X, out)


def apply(machine: Any, method: str, X: Any, out: Any = None) -> Any:
    """Call a method of a fitted machine for rows in blocks; see `predict`.

    Parameters
    ----------
    machine : fitted machine
        Any.
    method : str
        Of the machine: takes rows, gives one result for each.
    X : RowBlocks, array, mapped array, path or function that gives blocks
        Rows.
    out : array, path or None
        Where results go.
    """
    function = getattr(machine, method, None)
    if not callable(function):
        raise AttributeError(f"{type(machine).__name__} has no {method}")
    blocks = as_blocks(X)
    if not isinstance(blocks, LocalBlocks):
        raise TypeError(
            f"{type(blocks).__name__} lies elsewhere; mercer.distributed has {method} for it"
        )
    results = _results(machine, function, blocks)
    if isinstance(out, str | os.PathLike):
        return _to_file(results, blocks, os.fspath(out))
    return _to_array(results, blocks, out, method)


def _results(
    machine: Any, function: Callable[[Any], Any], blocks: LocalBlocks
) -> Iterator[tuple[int, Array]]:
    """Yield the first row and the results of a few thousand rows at a time."""
    step = rows_at_once(_width(machine, blocks.n_columns), _ROWS, arrays=_COPIES)
    for block in blocks:
        for start in range(0, row_count(block.X), step):
            rows = slice(start, min(start + step, row_count(block.X)))
            yield block.first + start, np.asarray(function(take(block.X, rows)))


def _width(machine: Any, columns: int) -> int:
    """Return how many numbers a row becomes on its way: features, or values at training rows."""
    held: Any = machine.__dict__.get("_expansion", machine.__dict__.get("_subspace"))
    features = getattr(getattr(held, "features", None), "dimension", 0)
    points = getattr(held, "points", None)
    return max(columns, int(features), 0 if points is None else row_count(points))


def _to_array(
    results: Iterator[tuple[int, Array]], blocks: LocalBlocks, out: Any, method: str
) -> Array:
    done = 0
    parts: list[Array] = []
    for first, part in results:
        done = first + len(part)
        if out is None:
            if first == 0 and blocks.n_rows is not None:
                size = part.nbytes // max(1, len(part)) * blocks.n_rows
                require_memory(size, f"{method} for {blocks.n_rows} rows", "Give out= a file.")
            parts.append(part)
            continue
        if out.shape[1:] != part.shape[1:] or done > len(out):
            raise ValueError(
                f"{method}: out has shape {out.shape}, but results are {part.shape[1:]} for each "
                f"of at least {done} rows"
            )
        out[first:done] = part
    if out is None:
        return np.concatenate(parts)
    if done != len(out):
        raise ValueError(f"{method}: out has {len(out)} rows, but the blocks have {done}")
    return np.asarray(out) if not isinstance(out, np.memmap) else out


def _to_file(results: Iterator[tuple[int, Array]], blocks: LocalBlocks, path: str) -> str:
    """Write beside the name, and give it the name when all is there."""
    if not path.endswith((".npy", ".csv")):
        raise ValueError(f"out={path!r} must end in .npy or .csv")
    part_path = f"{path}.part"
    try:
        (_to_npy if path.endswith(".npy") else _to_csv)(results, blocks, part_path)
        os.replace(part_path, path)
    finally:
        if os.path.exists(part_path):
            os.remove(part_path)
    return path


def _to_npy(results: Iterator[tuple[int, Array]], blocks: LocalBlocks, path: str) -> None:
    n, mapped = blocks.count(), None
    for first, part in results:
        if mapped is None:
            if part.dtype.kind == "O":
                raise TypeError("labels that are objects go to a .csv, or to an array")
            mapped = np.lib.format.open_memmap(path, "w+", part.dtype, (n, *part.shape[1:]))
        mapped[first : first + len(part)] = part
    if mapped is not None:
        mapped.flush()


def _to_csv(results: Iterator[tuple[int, Array]], blocks: LocalBlocks, path: str) -> None:
    import csv  # noqa: PLC0415  only where a file is asked for

    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        for _, part in results:
            writer.writerows(part.reshape(len(part), -1).tolist())
