"""Kernel values must be numbers: found out before a solver meets them."""

from __future__ import annotations

import numpy as np

from mercer._types import Array
from mercer.gram.base import Gram
from mercer.gram.dense import DenseGram
from mercer.kernels import Kernel


def refuse_overflow(gram: Gram, kernel: Kernel, rows: Array | None = None) -> None:
    """Raise if the kernel overflows on the training points.

    A valid kernel has |k(x, y)|^2 <= k(x, x) k(y, y), so a finite diagonal vouches for the whole
    matrix; a kernel that is not known to be valid is looked at entry by entry where it is stored.
    """
    bad = np.flatnonzero(~np.isfinite(gram.diag()))
    if not len(bad) and not gram.valid and isinstance(gram, DenseGram):
        bad = np.flatnonzero(~np.isfinite(gram.dense()).all(axis=1))
    if len(bad):
        numbers = bad if rows is None else rows[bad]
        shown = ", ".join(map(str, numbers[:5])) + (", ..." if len(bad) > 5 else "")
        raise ValueError(
            f"kernel value not finite: {kernel!r} overflows on {len(bad)} row(s) of X ({shown}). "
            "Scale the features, or use a smaller degree."
        )
