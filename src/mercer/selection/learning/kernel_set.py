"""Several kernels on the same rows: how their matrices are held, and put on one scale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.gram import Gram, Need, make_gram
from mercer.gram.build import matrix_gram
from mercer.kernels import Kernel, Precomputed, resolve
from mercer.machines.base.machine import is_precomputed
from mercer.points import is_sparse, row_count
from mercer.resources import require_memory, within_budget

_CONSTANT = 1e-12  # of the mean of k(x, x): a variance that is rounding


@dataclass(frozen=True, eq=False)
class KernelSet:
    """Kernels and the rows they compare.

    Attributes
    ----------
    kernels : tuple of Kernel
        The kernels; `Precomputed()` for given matrices.
    points : Points or None
        The rows.
    names : list of str or None
        Names of their columns.
    matrices : tuple of Gram
        Given matrices, restricted to the rows that count.
    """

    kernels: tuple[Kernel, ...]
    points: Points | None
    names: list[str] | None
    matrices: tuple[Gram, ...] = ()

    @staticmethod
    def given(matrices: list[Any], n: int, rows: Array) -> KernelSet:
        """Take given matrices, all n by n."""
        grams = []
        for k, matrix in enumerate(matrices):
            K = np.asarray(matrix)
            if K.shape != (n, n):
                raise ValueError(
                    f"combine: matrix {k} of X has shape {K.shape}; with Precomputed(), X is a "
                    f"sequence of matrices of shape ({n}, {n}), one for each kernel"
                )
            try:
                grams.append(matrix_gram(K, rows))
            except ValueError as error:
                raise ValueError(f"combine: matrix {k} of X: {error}") from None
        return KernelSet((Precomputed(),) * len(grams), None, None, tuple(grams))

    @property
    def count(self) -> int:
        """Count the rows."""
        return self.matrices[0].shape[0] if self.matrices else row_count(self.points)

    def refuse_large(self, method: str, copies: int) -> None:
        """Refuse, before anything is stored, where not even the weighted sum fits."""
        needed = copies * 8 * self.count**2
        require_memory(
            needed,
            f"combine: method={method!r} on {self.count} rows",
            "Alternatives: method='alignment', which stores no matrix; fewer rows; or a larger "
            "budget with mercer.config(memory=...).",
        )

    def grams(self, copies: int) -> tuple[Gram, ...]:
        """Make the matrices: stored if all of them fit beside so many others, else evaluated anew.

        In float64 if that fits, else in float32.
        """
        if self.matrices:
            return self.matrices
        count = len(self.kernels)
        single = not within_budget(8.0 * (count + copies) * self.count**2)
        dtype = np.float32 if single else np.float64
        held = count + (2 * copies if single else copies)  # what is made of them is in float64
        return tuple(
            make_gram(k, self.points, Need.PRODUCTS, names=self.names, dtype=dtype, copies=held)
            for k in self.kernels
        )

    def called(self, k: int) -> str:
        """Name one of the kernels."""
        return f"matrix {k} of X" if self.matrices else f"kernel {k}, {self.kernels[k]!r},"

    def factors(self, grams: tuple[Gram, ...], weights: Array, normalize: bool) -> Array:
        """Return the factor of each kernel: one, or one over its variance in feature space."""
        share = weights / weights.sum()
        variances = []
        for k, gram in enumerate(grams):
            size = float(share @ gram.diag())
            variance = size - float(share @ (gram @ share))
            if variance < -_CONSTANT * abs(size):
                raise ValueError(
                    f"combine: {self.called(k)} is not positive semidefinite (it gives the rows a "
                    "negative variance); weights are learnt for valid kernels only"
                )
            if not variance > _CONSTANT * abs(size):
                raise ValueError(
                    f"combine: {self.called(k)} is constant on these rows, so that it tells "
                    "nothing about them; leave it out, or change its scale"
                )
            variances.append(variance)
        return 1.0 / np.array(variances) if normalize else np.ones(len(grams))


def given_matrices(X: Any) -> list[Any]:
    """Require a sequence of matrices."""
    listed = isinstance(X, Iterable) and getattr(X, "ndim", 1) > 0 and not is_sparse(X)
    matrices = list(X) if listed else []
    if not matrices or not all(np.ndim(matrix) == 2 for matrix in matrices):
        raise ValueError(
            "combine: with kernels=Precomputed(), X must be a sequence of square matrices, one for "
            "each kernel, such as [K1, K2]"
        )
    return matrices


def kernel_set(
    kernels: Sequence[Any], points: Points, names: list[str] | None, weights: Array
) -> KernelSet:
    """Read kernels from what the user gave."""
    single = isinstance(kernels, str | Kernel) or getattr(kernels, "ndim", 1) == 0
    if single or not isinstance(kernels, Iterable):
        raise TypeError(
            f"combine: kernels={kernels!r} must be a list of kernels, or Precomputed() for matrices"
        )
    chosen = list(kernels)
    if not chosen:
        raise ValueError("combine: kernels is empty; give at least one kernel")
    if any(map(is_precomputed, chosen)):
        raise ValueError(
            "combine: Precomputed() cannot be one kernel among others; for given matrices pass "
            "kernels=Precomputed() and the list of matrices as X"
        )
    found = []
    for k, given in enumerate(chosen):
        try:
            kernel = resolve(given, points, weights)
        except TypeError as error:
            raise TypeError(f"combine: entry {k} of kernels: {error}") from None
        found.append(kernel)
        if not kernel.psd:
            raise ValueError(
                f"combine: kernel {k}, {kernel!r}, is not positive semidefinite; weights are "
                "learnt for valid kernels only"
            )
    return KernelSet(tuple(found), points, names)
