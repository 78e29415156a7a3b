"""Answers of a fitted machine for Dask collections: lazy, chunk by chunk, on the workers."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np

from mercer.distributed.chunks import is_dask, is_frame, refuse_cut_columns
from mercer.resources import config

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
    import dask  # noqa: PLC0415  there, since the rows are its own
    import dask.array as da  # noqa: PLC0415

    if is_frame(X):
        parts, sizes = list(X.to_delayed()), (nan,) * X.npartitions
        tried = X._meta_nonempty
    else:
        refuse_cut_columns(X)
        parts, sizes = list(X.to_delayed().ravel()), X.chunks[0]
        tried = np.ones((_TRIED, int(X.shape[1])), dtype=X.dtype)
    like = answered(tried, machine, method)
    # the machine is one task of its own, so that it is sent to a worker once, not with every chunk
    shared = dask.delayed(machine, traverse=False)
    ask = dask.delayed(answered, pure=False)
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
