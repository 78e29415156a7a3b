"""What users hand over becomes a kernel here, and only here: objects, names, texts, functions.

Names without brackets stand for a kernel whose scale suits the data (`default_scales`), alone or
within a formula: "gaussian", "gaussian + linear", "rbf[age, income]".
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mercer.array_types import Array, Points
from mercer.kernels.base import Kernel
from mercer.kernels.columns import column_names
from mercer.kernels.families.given import FromCallable
from mercer.kernels.language.default_scales import unscaled, with_scales
from mercer.kernels.language.parse import parse


def resolve(
    kernel: Any,
    X: Any = None,
    sample_weight: Any = None,
    names: Sequence[str] | None = None,
) -> Kernel:
    """Turn what a user gave as `kernel` into a Kernel.

    Parameters
    ----------
    kernel : Kernel, str or callable
        A kernel; a name or a text for `parse`; a function of two blocks of rows;
        or a kernel of scikit-learn's Gaussian processes (whose noise terms count for nothing
        here: the penalty of a machine stands for them).
    X : array-like, optional
        Data that names without brackets take their scale from; without it, a name has the defaults
        of its class.
    sample_weight : array-like (n,), optional
        How often each row counts.
    names : sequence of str, optional
        Names of the columns, where X has none itself.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> resolve("rbf", [[0.0, 2.0], [4.0, 2.0]])
    Gaussian(scale=1.4142135623730951)
    >>> resolve("0.5 * linear + rbf(gamma=0.5)")
    0.5 * Linear() + Gaussian(scale=1.0)
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        return with_scales(parse(kernel, unscaled), X, sample_weight, _names(X, names))
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise TypeError(f"kernel={kernel.__name__} is a class; pass a kernel: {kernel.__name__}()")
    if _is_gaussian_process_kernel(kernel):
        return FromCallable(GaussianProcessFunction(kernel))
    if callable(kernel):
        return FromCallable(kernel)
    raise TypeError(
        f"kernel={kernel!r} must be a kernel such as Gaussian(scale=2.0), a name such as 'rbf', a "
        "text such as 'gaussian(2) + linear', or a function of two blocks of rows"
    )


@dataclass(frozen=True, eq=False)
class GaussianProcessFunction:
    """A kernel of scikit-learn's Gaussian processes as a function of two blocks of rows."""

    kernel: Any

    def __call__(self, X: Points, Y: Points) -> Array:
        """Evaluate on dense rows."""
        dense = (P.toarray() if isinstance(P, csr_array) else P for P in (X, Y))
        return np.asarray(self.kernel(*dense))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GaussianProcessFunction) and bool(self.kernel == other.kernel)

    def __hash__(self) -> int:
        return hash(repr(self.kernel))  # scikit-learn's own kernels compare but have no hash


def _is_gaussian_process_kernel(kernel: Any) -> bool:
    module = sys.modules.get("sklearn.gaussian_process.kernels")  # nobody has one without it
    return module is not None and isinstance(kernel, module.Kernel)


def _names(X: Any, names: Sequence[str] | None) -> Sequence[str] | None:
    return column_names(X) if names is None else names
