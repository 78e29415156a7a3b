"""Kernel-target alignment: does similarity mean equal answers? One number, without a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.gram import Need, make_gram
from mercer.kernels import Precomputed, resolve
from mercer.machines.base.machine import is_precomputed
from mercer.points import take
from mercer.problems import KernelAlignment
from mercer.selection.learning.labelled import labelled
from mercer.selection.learning.parameters import check_flag


def alignment(
    kernel: Any,
    X: Any,
    y: Any,
    *,
    centered: bool = True,
    target: str = "auto",
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Measure how well a kernel agrees with labels or targets: the cosine of two matrices.

    <K, Y Y'> / sqrt(<K, K> <Y Y', Y Y'>), where Y Y' is the kernel that knows the answer: y y' for
    numbers, 1 for rows of one class and -1/(k - 1) for rows of two among k. Both matrices are
    centred first, as if their features had mean zero.

    Parameters
    ----------
    kernel : Kernel, str or callable
        What similarity is; `Precomputed()` for a matrix in place of X.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows; strings for string kernels.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Labels, or numbers.
    centered : bool
        Whether to centre. Without it a kernel of large mean is aligned with unequal classes.
    target : {"auto", "labels", "numbers"}
        What y holds. "auto" takes text, truth values and whole numbers for labels, as scikit-learn
        does: say "numbers" for counts.
    sample_weight : array-like of shape (n_samples,), optional
        How often each row counts.

    Returns
    -------
    float
        Between -1 and 1, not negative for a valid kernel; 1 if the kernel is the ideal one, 0 if it
        tells nothing (a constant kernel).

    Notes
    -----
    Where the matrix does not fit the memory budget, its rows are evaluated block by block.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Gaussian, Linear
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = (X**2).sum(axis=1) > 1.4
    >>> round(alignment(Gaussian(0.7), X, y), 2), round(alignment(Linear(), X, y), 2)
    (0.32, 0.01)
    """
    check_flag("alignment", "centered", centered)
    given = is_precomputed(kernel)
    data = labelled("alignment", X, y, sample_weight, target, given)
    rows = np.flatnonzero(data.weights > 0)
    chosen = (
        Precomputed() if given else resolve(kernel, take(data.points, rows), data.weights[rows])
    )
    gram = make_gram(chosen, data.points, Need.PRODUCTS, rows=rows, names=data.names)
    problem = KernelAlignment(
        (gram,), np.ones(1), data.ideal()[rows], data.weights[rows], bool(centered)
    )
    if not problem.aim.any():
        raise ValueError("alignment: y is constant, so that no kernel agrees with it; pass targets")
    return problem.moments.alignment(np.ones(1))
