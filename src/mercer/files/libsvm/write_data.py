"""Write rows and targets in LIBSVM's text format."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.array_types import Array
from mercer.files.atomic import write_file
from mercer.files.libsvm.write_model import entries_of
from mercer.points import as_points, is_objects, is_sparse, to_dense

_LINES_AT_ONCE = 4096


def write_libsvm_data(
    X: Any, y: npt.ArrayLike | None, path: str | os.PathLike[str], *, precomputed: bool = False
) -> None:
    r"""Write rows and targets as LIBSVM's text: `target column:value column:value ...`.

    Zeros are left out, columns are counted from 1, and numbers have 17 digits: reading gives the
    same numbers back.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows, or a kernel matrix.
    y : array-like of shape (n_samples,) or None
        Numbers; None writes 0 for every row, as LIBSVM has it for rows without targets.
    path : str or path
        Where to write; the file takes its name when it is whole.
    precomputed : bool, default=False
        Whether X is a kernel matrix: of training rows against training rows, or of new rows against
        training rows. Then lines begin with the row's number, `0:i`, and no zero is left out.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> name = Path(tempfile.mkdtemp()) / "rows.txt"
    >>> write_libsvm_data([[1.0, 0.0, 2.5], [0.0, 0.1, 0.0]], [1, -1], name)
    >>> print(name.read_text().replace(" \n", "\n"), end="")
    1 1:1 3:2.5
    -1 2:0.10000000000000001
    """
    points = as_points(X)
    if is_objects(points):
        raise ValueError("write_libsvm_data: X holds strings or lists; LIBSVM's rows are numbers")
    n = points.shape[0]
    targets = _targets(y, n)
    entries = points.data if is_sparse(points) else points
    if not np.isfinite(entries).all():
        raise ValueError("write_libsvm_data: X holds NaN or infinity, which LIBSVM does not read")
    if precomputed:
        points = to_dense(points)
    write = _matrix_row if precomputed else entries_of
    blocks = (range(n)[first : first + _LINES_AT_ONCE] for first in range(0, n, _LINES_AT_ONCE))
    lines = (
        "".join(f"{targets[i]:.17g} {write(points, i)}\n" for i in rows).encode("ascii")
        for rows in blocks
    )
    write_file(path, lines)


def _matrix_row(K: Array, i: int) -> str:
    values = enumerate(K[i].tolist(), 1)
    return "".join([f"0:{i + 1} ", *(f"{column}:{value:.17g} " for column, value in values)])


def _targets(y: npt.ArrayLike | None, n: int) -> list[float]:
    if y is None:
        return [0.0] * n
    given = np.asarray(y)
    if given.shape != (n,):
        raise ValueError(f"write_libsvm_data: y has shape {given.shape}, X has {n} rows")
    try:
        numbers = given.astype(np.float64)
    except (TypeError, ValueError):
        numbers = np.full(n, np.nan)
    if given.dtype.kind in "US" or not np.isfinite(numbers).all():
        raise ValueError(
            "write_libsvm_data: y must be finite numbers, as LIBSVM's targets are; number the "
            "labels first, e.g. with numpy.unique(y, return_inverse=True)"
        )
    return [float(number) for number in numbers]
