"""One view of a canonical correlation, ready to be multiplied: H = U diag(shrink(s)) U'.

The correlations of two views are the singular values of H_x H_y. How H is held is all that sets the
algorithms apart: by a basis (`BasisView`), as a stored inverse, or by inner iterations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends.interruptible import interruptible
from mercer.gram import FactoredGram, Gram
from mercer.problems.correlation.correlation import column_sizes
from mercer.problems.correlation.shrinkage import Shrinkage

_CUT = 1e-10  # singular values of features, of the largest: below, rounding of the centring


class View(ABC):
    """H of one view.

    Attributes
    ----------
    left : float
        Trace of what an approximation left out of the Gram.
    """

    left: float

    @property
    @abstractmethod
    def n(self) -> int:
        """Count the rows."""

    @property
    @abstractmethod
    def rank(self) -> int | None:
        """Count the directions, where that is known."""

    @abstractmethod
    def shrink(self, V: Array) -> Array:
        """Multiply by H."""

    @abstractmethod
    def coef(self, P: Array) -> Array:
        """Turn unit vectors into coefficients: M^-1/2 P."""

    def weights(self, P: Array) -> Array | None:
        """Turn unit vectors into weights of features, where those are at hand."""
        return None


@dataclass(frozen=True, eq=False)
class BasisView(View):
    """H by an orthonormal basis of the variates that the view can reach.

    Attributes
    ----------
    vectors : (n, r) array
        The basis U.
    factors : (r,) array
        By how much the penalty shrinks along each.
    """

    vectors: Array
    factors: Array

    @property
    def n(self) -> int:
        """Count the rows."""
        return len(self.vectors)

    @property
    def rank(self) -> int:
        """Count the directions."""
        return len(self.factors)

    def shrink(self, V: Array) -> Array:
        """Multiply in the basis."""
        return np.asarray(self.vectors @ (self.factors[:, None] * (self.vectors.T @ V)))


@dataclass(frozen=True, eq=False)
class SpectralView(BasisView):
    """H by the eigenvectors of the Gram.

    Attributes
    ----------
    roots : (r,) array
        The eigenvalues of M^-1/2.
    left : float
        Trace of what was left out.
    """

    roots: Array
    left: float = 0.0

    def coef(self, P: Array) -> Array:
        """Divide in the eigenbasis."""
        return np.asarray(self.vectors @ (self.roots[:, None] * (self.vectors.T @ P)))


@dataclass(frozen=True, eq=False)
class FeatureView(BasisView):
    """H by features, whose own weights are kept: coefficients would cost the condition twice.

    Attributes
    ----------
    directions : (D, r) array
        The weights of the features whose variates are the basis, penalty included.
    roots : (r, r) array
        M^-1/2 in the basis.
    """

    directions: Array
    roots: Array
    left: float = 0.0

    def coef(self, P: Array) -> Array:
        """Multiply in the basis."""
        return np.asarray(self.vectors @ (self.roots @ (self.vectors.T @ P)))

    def weights(self, P: Array) -> Array:
        """Combine the directions."""
        return np.asarray(self.directions @ (self.vectors.T @ P))


def spectral(
    vectors: Array, s: Array, form: Shrinkage, penalty: float, left: float = 0.0
) -> SpectralView:
    """Return the view of known eigenpairs, all of them positive."""
    return SpectralView(vectors, form.shrink(s, penalty), form.inverse_root(s, penalty), left)


def has_features(gram: Gram) -> bool:
    """Return whether a Gram has fewer dense features than rows."""
    return isinstance(gram, FactoredGram) and isinstance(gram.factor, np.ndarray)


def view_of_features(gram: FactoredGram, form: Shrinkage, penalty: float) -> FeatureView:
    """Return the view of a Gram with dense features: QR, then the singular values of R.

    The features themselves are orthonormalised, not F'F: directions whose variances differ by up
    to 10^20 keep their place. Without a penalty the scale of a column means nothing, and is taken
    off first.
    """
    sizes = column_sizes(gram)
    if penalty == 0:
        view = _independent(gram.factor, sizes)
        if view is not None:
            return view
    Q, R = interruptible(np.linalg.qr, np.where(sizes > 0, gram.factor, 0.0))
    W, sigma, Vt = interruptible(np.linalg.svd, R, full_matrices=False)
    kept = sigma > _CUT * sigma.max(initial=0.0)
    sigma, s = sigma[kept], np.square(sigma[kept])
    roots = form.inverse_root(s, penalty)
    directions = Vt[kept].T * (sigma * roots)
    return FeatureView(Q @ W[:, kept], form.shrink(s, penalty), directions, np.diag(roots))


def _independent(F: Array, sizes: Array) -> FeatureView | None:
    """Return the view of independent columns without a penalty; None where they depend."""
    live = np.flatnonzero(sizes)
    Q, R = interruptible(np.linalg.qr, F[:, live] / sizes[live])
    sigma = np.linalg.svd(R, compute_uv=False)
    if len(sigma) < len(live) or (sigma <= _CUT * sigma.max(initial=0.0)).any():
        return None
    inverse = linalg.solve_triangular(R, np.eye(len(live))) if len(live) else R
    directions = np.zeros((len(sizes), len(live)))
    directions[live] = inverse / sizes[live, None]
    return FeatureView(Q, np.ones(len(live)), directions, directions.T @ directions)
