"""Compute statistics of a kernel matrix on a sample of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.data import DataError, Kind, Table
from mercer.kernels import Kernel, Precomputed, is_valid, parse, resolve
from mercer.kernels.algebra import parts
from mercer.kernels.sequences import Spectrum, Subsequence
from mercer.selection import alignment

_SHARE = 0.9  # fraction of the variance that "directions" have in total


def trial(text: str, table: Table, target: str | None, rows: int, seed: int) -> dict[str, Any]:
    """Return statistics of the kernel matrix of sampled rows.

    Parameters
    ----------
    text : str
        Kernel expression.
    table : Table
        Rows to sample from.
    target : str or None
        Column to align the kernel with.
    rows : int
        Sample size.
    seed : int
        Random seed of the sample.

    Returns
    -------
    dict
        Statistics by name.
    """
    features = table if target is None else table.drop(target)
    strings = _reads_strings(parse(text))
    chosen = _sample(_whole(features, strings), rows, seed)
    X = _text(features, chosen) if strings else _scaled(features, chosen)
    kernel = resolve(text, X)
    K = np.asarray(kernel(X))
    verdict = is_valid(kernel, X, n_samples=len(K))
    length = np.sqrt(np.maximum(np.diag(K), np.finfo(float).tiny))
    apart = (K / np.outer(length, length))[~np.eye(len(K), dtype=bool)]
    values = np.maximum(np.linalg.eigvalsh((K + K.T) / 2)[::-1], 0.0)
    found = {
        "kernel": repr(kernel),
        "rows": len(K),
        "verdict": verdict.statement,
        "valid": bool(verdict),
        "typical similarity": float(np.median(apart)),
        "lowest similarity": float(apart.min()),
        "highest similarity": float(apart.max()),
        "directions": int(np.searchsorted(np.cumsum(values), _SHARE * values.sum()) + 1),
    }
    if target is not None:
        found["alignment"] = float(alignment(Precomputed(), K, table.rows(chosen)[target]))
    return found


def _reads_strings(kernel: Kernel) -> bool:
    if isinstance(kernel, Spectrum | Subsequence):
        return True
    return any(_reads_strings(part) for part in parts(kernel))


def _whole(table: Table, strings: bool) -> Array:
    """Return the indices of rows without missing values in the columns of the kernel."""
    if strings:
        values = table[_text_column(table)]
        return np.flatnonzero([value is not None for value in values.tolist()])
    gaps = np.zeros(len(table), dtype=bool)
    for name in _numbers(table):
        gaps |= np.isnan(table[name])
    return np.flatnonzero(~gaps)


def _sample(rows: Array, count: int, seed: int) -> Array:
    if len(rows) < 2:
        raise DataError("fewer than two rows have no missing values; impute missing values first")
    drawn = np.random.default_rng(seed).choice(rows, min(count, len(rows)), replace=False)
    return np.sort(drawn)


def _numbers(table: Table) -> list[str]:
    found = [n for n, k in table.kinds.items() if k is Kind.NUMBER or table[n].dtype.kind == "f"]
    if not found:
        raise DataError("the table has no numeric column; try a string kernel or --kind")
    return found


def _scaled(table: Table, chosen: Array) -> Table:
    names = _numbers(table)
    X = np.asarray(table[names])[chosen]
    spread = X.std(axis=0)
    return Table.of((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0), names=names)


def _text_column(table: Table) -> str:
    words = [name for name in table.columns if table[name].dtype.kind == "O"]
    text = [name for name in words if table.kinds[name] is Kind.TEXT]
    if not words:
        raise DataError("the table has no text column for a string kernel")
    return (text or words)[0]


def _text(table: Table, chosen: Array) -> list[str]:
    return [str(value) for value in table[_text_column(table)][chosen].tolist()]
