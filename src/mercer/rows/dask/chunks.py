"""Chunks of Dask collections: checks, local blocks, and lazy predictions by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

import numpy as np

from mercer.resources import config
from mercer.rows.blocks import LocalBlocks
from mercer.rows.points import is_sparse, working_dtype

# --- chunks --------------------------------------------------------------------------------------
#
# Dask collections as chunks of whole rows: what is asked of them before anything is computed.


def is_dask(value: Any) -> bool:
    """Return whether a value is a Dask array, data frame or series; Dask is not imported for it.

    Examples
    --------
    >>> is_dask([[1.0, 2.0]])
    False
    """
    return any(
        kind.__module__.startswith(("dask.array", "dask.dataframe")) for kind in type(value).__mro__
    )


def is_frame(value: Any) -> bool:
    """Return whether a Dask collection is a data frame or series."""
    return hasattr(value, "npartitions") and hasattr(value, "divisions")


@dataclass(frozen=True, eq=False)
class Chunks:
    """Chunks of rows with what belongs to them, as Dask's delayed values.

    Attributes
    ----------
    X : list of Delayed
        Rows.
    y, weights : list of Delayed, or list of None
        Targets and weights.
    sizes : list of int or None
        Rows of each chunk, where Dask knows them.
    n_columns : int
        Columns.
    dtype : dtype
        Of the working numbers.
    names : tuple of str or None
        Names of the columns of a data frame.
    """

    X: list[Any]
    y: list[Any]
    weights: list[Any]
    sizes: list[int] | None
    n_columns: int
    dtype: Any
    names: tuple[str, ...] | None


def row_chunks(X: Any, y: Any = None, weights: Any = None) -> Chunks:
    """Look at a collection of rows, and cut targets and weights where its rows are cut.

    Parameters
    ----------
    X : dask array (n, d), or dask data frame
        Rows.
    y, weights : dask array or series, or array in memory, optional
        One entry for each row.
    """
    if not is_dask(X):
        raise TypeError(f"X must be a Dask array or data frame, not {type(X).__name__}")
    names: tuple[str, ...] | None = None
    sizes: list[int] | None = None
    if is_frame(X):
        names = tuple(map(str, X.columns))
        refuse_text_columns(X)
        parts = list(X.to_delayed())
        dtype = np.result_type(*X.dtypes.tolist()) if names else np.dtype(np.float64)
        n_columns = len(names)
    else:
        refuse_cut_columns(X)
        parts = list(X.to_delayed().ravel())
        dtype, n_columns = X.dtype, int(X.shape[1])
        if not any(isnan(size) for size in X.chunks[0]):
            sizes = [int(size) for size in X.chunks[0]]
    if n_columns == 0:
        raise ValueError("X has no columns (0 feature(s)); a minimum of 1 is required")
    return Chunks(
        parts,
        aligned(y, "y", parts, sizes),
        aligned(weights, "sample_weight", parts, sizes),
        sizes,
        n_columns,
        np.dtype(working_dtype(dtype)),
        names,
    )


def refuse_cut_columns(X: Any) -> None:
    """Raise if an array is not one of rows, or its chunks hold parts of rows."""
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows and columns, not {X.ndim}")
    if isnan(X.shape[1]):
        raise ValueError("X has an unknown number of columns; call X.compute_chunk_sizes() first")
    if X.numblocks[1] > 1:
        raise ValueError(
            f"X is cut into {X.numblocks[1]} chunks along its columns, and a block must hold whole "
            "rows: pass X.rechunk({1: -1})"
        )
    if X.dtype.kind not in "fiub":
        raise TypeError(f"X must hold numbers, not {X.dtype}")


def refuse_text_columns(X: Any) -> None:
    """Raise if a data frame has columns that are no numbers, or no single names."""
    for name, kind in zip(X.columns, X.dtypes, strict=True):
        if getattr(kind, "kind", "O") not in "fiub":
            raise TypeError(
                f"column {name!r} of X holds {kind}; a block must hold numbers: encode the column "
                "or leave it out"
            )
    if len(set(X.columns)) < len(X.columns):
        raise ValueError("X has several columns of one name; rename them")


def aligned(values: Any, what: str, parts: list[Any], sizes: list[int] | None) -> list[Any]:
    """Cut targets or weights where the rows are cut."""
    if values is None:
        return [None] * len(parts)
    if not is_dask(values):
        values = as_chunked(values, what, sizes)
    if is_frame(values):
        cut = list(values.to_delayed())
    else:
        known = not any(isnan(size) for size in values.chunks[0])
        if known and sizes is not None:
            if int(values.shape[0]) != sum(sizes):
                raise ValueError(
                    "Found input variables with inconsistent numbers of samples: "
                    f"{sum(sizes)} rows in X, {int(values.shape[0])} in {what}"
                )
            values = values.rechunk({0: tuple(sizes)})
        if values.ndim > 1:
            values = values.rechunk({1: -1})
        cut = list(values.to_delayed().ravel())
    if len(cut) != len(parts):
        raise ValueError(
            f"X has {len(parts)} chunks and {what} {len(cut)}, and sizes are not known: call "
            f"compute_chunk_sizes() on both, or take X and {what} from one data frame"
        )
    return cut


def as_chunked(values: Any, what: str, sizes: list[int] | None) -> Any:
    """Return an array in memory as a Dask array that is cut where the rows are."""
    import dask.array as da  # noqa: PLC0415  Dask is there: the rows are its own

    if sizes is None:
        raise ValueError(
            f"{what} is in memory, but the sizes of the chunks of X are not known: pass a column "
            "of the same data frame, or X.to_dask_array(lengths=True)"
        )
    array = np.asarray(values)
    if len(array) != sum(sizes):
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"{sum(sizes)} rows in X, {len(array)} in {what}"
        )
    return da.from_array(array, chunks=(tuple(sizes), *array.shape[1:]))


# --- chunk blocks --------------------------------------------------------------------------------
#
# Chunks of a Dask collection on this machine, where no cluster is running.


class ChunkBlocks(LocalBlocks):
    """Chunks that are computed one after the other, anew in each pass; none is kept.

    Parameters
    ----------
    X : dask array (n, d) or dask data frame
        Rows; chunks must hold whole rows.
    y, weights : dask array or series, or array, optional
        Targets and weights.

    Examples
    --------
    >>> import dask.array as da
    >>> from mercer.rows.dask.chunks import ChunkBlocks
    >>> [len(block) for block in ChunkBlocks(da.ones((5, 2), chunks=(2, 2)))]
    [2, 2, 1]
    """

    def __init__(self, X: Any, y: Any = None, weights: Any = None) -> None:
        self.chunks = row_chunks(X, y, weights)
        self.n_rows = None if self.chunks.sizes is None else sum(self.chunks.sizes)
        self.n_columns, self.dtype = self.chunks.n_columns, self.chunks.dtype
        self.names = self.chunks.names

    def parts(self) -> Iterator[tuple[Any, Any, Any]]:
        """Compute a chunk, and what belongs to it."""
        from dask.base import compute  # noqa: PLC0415  there, since the rows are its own

        chunks = self.chunks
        for parts in zip(chunks.X, chunks.y, chunks.weights, strict=True):
            X, y, weights = compute(*parts)
            X = X if is_sparse(X) else np.asarray(X)
            yield (
                X.astype(self.dtype, copy=False),
                None if y is None else np.asarray(y),
                None if weights is None else np.asarray(weights).reshape(-1),
            )


# --- answers -------------------------------------------------------------------------------------
#
# Answers of a fitted machine for Dask collections: lazy, chunk by chunk, on the workers.

_TRIED = 2  # rows that are asked about here, to know shape and type of the answers


def predict(machine: Any, X: Any) -> Any:
    """Predict for a Dask array or data frame; nothing is computed yet.

    Parameters
    ----------
    machine : fitted machine
        Any with `predict`, wherever it was fitted.
    X : dask array or dask data frame
        Rows.

    Returns
    -------
    dask array
        One answer for each row, in chunks of the rows.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> from mercer.distributed import predict
    >>> X = np.arange(6.0)[:, None]
    >>> machine = KernelRidge(1e-9).fit(X, 2 * X[:, 0])
    >>> predict(machine, da.from_array(X, chunks=(2, 1))).compute().round(3).tolist()
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """
    return apply(machine, "predict", X)


def transform(machine: Any, X: Any) -> Any:
    """Transform a Dask array or data frame; see `predict`."""
    return apply(machine, "transform", X)


def decision_function(machine: Any, X: Any) -> Any:
    """Evaluate decisions for a Dask array or data frame; see `predict`."""
    return apply(machine, "decision_function", X)


def predict_proba(machine: Any, X: Any) -> Any:
    """Return probabilities for a Dask array or data frame; see `predict`."""
    return apply(machine, "predict_proba", X)


def apply(machine: Any, method: str, X: Any) -> Any:
    """Call a method of a fitted machine for each chunk of a Dask collection; see `predict`.

    Parameters
    ----------
    machine : fitted machine
        Any; it travels to the workers, with its certificate.
    method : str
        Takes rows, and gives one result for each.
    X : dask array or dask data frame
        Rows.
    """
    if not callable(getattr(machine, method, None)):
        raise AttributeError(f"{type(machine).__name__} has no {method}")
    if not is_dask(X):
        raise TypeError(
            f"{method}: X must be a Dask array or data frame, not {type(X).__name__}; for rows in "
            f"memory call machine.{method}(X)"
        )
    import dask.array as da  # noqa: PLC0415  there, since the rows are its own
    from dask.delayed import delayed  # noqa: PLC0415

    if is_frame(X):
        parts, sizes = list(X.to_delayed()), (nan,) * X.npartitions
        tried = X._meta_nonempty
    else:
        refuse_cut_columns(X)
        parts, sizes = list(X.to_delayed().ravel()), X.chunks[0]
        tried = np.ones((_TRIED, int(X.shape[1])), dtype=X.dtype)
    like = answered(tried, machine, method)
    # the machine is one task of its own, so that it is sent to a worker once, not with every chunk
    shared = delayed(machine, traverse=False)
    ask = delayed(answered, pure=False)
    made = [
        da.from_delayed(ask(part, shared, method, like[:0]), (size, *like.shape[1:]), like.dtype)
        for part, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(made, allow_unknown_chunksizes=True)


def answered(X: Any, machine: Any, method: str, like: Any = None) -> Any:
    """Return the answers for one chunk; `like` has the shape and type of none."""
    if like is not None and len(X) == 0:
        return like
    with config(threads=1):  # Dask runs one task for each thread
        found = np.asarray(getattr(machine, method)(X))
    return found if like is None else found.astype(like.dtype, copy=False)
