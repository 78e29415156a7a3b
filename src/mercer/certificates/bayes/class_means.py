"""Are these the class means? Shares that add up, and lengths computed anew."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.certificates.base import Certificate, certify
from mercer.gram import exact
from mercer.gram.definite import NEGATIVE
from mercer.problems import ClassMeans, Means

_TOL = 1e-9
_ROUNDING = 1e-7  # of the longest row: its square is what products of rows are known to
_LOST = 1e-15  # of k(x, x) before rows were centred: an estimate of the rounding that leaves


@dataclass(frozen=True)
class ClassMeansQuantities:
    """Measures of class means.

    Attributes
    ----------
    share_error : float
        Largest difference of a coefficient from the row's share in the mean of its class, over the
        largest share.
    length_error : float
        Largest error of a squared length, over the largest k(x, x).
    closest_pair : float
        Smallest distance between two means, over the root of the largest k(x, x); at rounding, the
        classes cannot be told apart by their means, and no answer is certified.
    smallest_square : float
        The smallest squared length of a mean, of the step between two, or from a mean to a row,
        over the largest k(x, x); below zero, beyond rounding, K is not positive semidefinite and
        there are no distances.
    """

    share_error: float
    length_error: float
    closest_pair: float
    smallest_square: float = 0.0


@certify.register
def _(problem: ClassMeans, value: Means, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    shares, gram = problem.shares(), exact(problem.gram)
    rounding = _LOST * float(np.abs(gram.raw.diag()).max(initial=0.0))
    size = max(float(np.abs(gram.diag()).max(initial=0.0)), rounding, np.finfo(float).tiny)
    images = np.asarray(gram @ shares)
    products = shares.T @ images
    squared = products.diagonal()
    apart = squared[:, None] + squared[None, :] - 2 * products
    pairs = apart[np.triu_indices(problem.count, 1)]
    to_rows = gram.diag()[:, None] - 2 * images + squared
    least = float(min(x.min(initial=0.0) for x in (squared, pairs, to_rows))) / size
    closest = float(np.sqrt(max(pairs.min(), 0.0) / size)) if len(pairs) else float("inf")
    if size <= rounding:  # of rows far from the origin nothing is left that could be told apart
        closest, least = 0.0, 0.0
    quantities = ClassMeansQuantities(
        float(np.abs(value.coef - shares).max() / shares.max()),
        float(np.abs(value.squared - squared).max() / size),
        closest,
        least,
    )
    apart_enough, lengths = quantities.closest_pair > _ROUNDING, least >= -NEGATIVE
    ok = quantities.share_error <= tol and quantities.length_error <= tol and apart_enough
    statement = (
        f"the {problem.count} points are the means of their classes; the closest two are "
        f"{quantities.closest_pair:.3g} apart, in units of the longest row"
        if apart_enough
        else "two means are the same to rounding, which then decides between their classes"
    )
    if not lengths:
        statement = (
            "the kernel matrix is not positive semidefinite: the squared length of a mean, or of "
            f"a step to one, is {least:.2g} of the longest row, so none is the nearest"
        )
    return Certificate(bool(ok and lengths), quantities, tol, statement)
