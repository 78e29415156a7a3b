"""Is this autoencoder at rest? Its loss and its derivatives by hand, in float64, without torch.

Affine encoders and decoders can do no better than principal components (Baldi and Hornik, 1989), so
for them the optimum is known. For others a vanishing gradient is all there is to prove.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan

import numpy as np

from mercer.array_types import Array
from mercer.certificates.base import Certificate, certify
from mercer.problems.neural.autoencoding import Autoencoding, NetworkParameters

_TOL = 2e-4
_SMALL = 1500  # rows or columns: up to here all variances are found in a moment


@dataclass(frozen=True)
class AutoencodingQuantities:
    """Measures of an autoencoder, in units of the variance of the rows.

    Attributes
    ----------
    loss : float
        Share of the variance that is lost, with the penalty.
    gradient : float
        Largest derivative of the loss by a weight or a bias.
    linear_loss : float
        What principal components of the same number lose; NaN where rows and columns are both
        many.
    shortfall : float
        Of affine maps without a penalty: how far the loss is above the least possible. NaN for
        others, of which the least is not known.
    held_out_loss : float
        The share that is lost of rows that were not learnt from; NaN without such.
    """

    loss: float
    gradient: float
    linear_loss: float
    shortfall: float
    held_out_loss: float


@certify.register
def _(problem: Autoencoding, value: NetworkParameters, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    if value.parameters.shape != (problem.size,) or not np.isfinite(value.parameters).all():
        nothing = AutoencodingQuantities(inf, inf, nan, nan, nan)
        return Certificate(False, nothing, tol, "no finite weights of the shapes asked for")
    loss, slope = problem.objective(value.parameters)
    best = least_linear_loss(problem.X, problem.weights, problem.layout.narrowest)
    known = problem.layout.is_linear and problem.penalty == 0
    quantities = AutoencodingQuantities(
        loss,
        float(np.abs(slope).max()),
        best,
        loss - best if known else nan,
        problem.held_out_loss(value.parameters),
    )
    # saddles of affine maps have no slope either: the loss tells them from the optimum
    ok = quantities.gradient <= tol and not quantities.shortfall > tol
    return Certificate(bool(ok), quantities, tol, _statement(quantities, bool(ok)))


def _statement(found: AutoencodingQuantities, ok: bool) -> str:
    seen = f"no derivative of the loss above {found.gradient:.1e}"
    if np.isnan(found.shortfall) and ok:
        seen += "; a vanishing gradient says that the weights are at rest, not that none are better"
    elif np.isnan(found.shortfall):
        seen += "; the weights are not at rest"
    else:
        seen += f"; the loss is {max(found.shortfall, 0.0):.1e} above that of principal components"
    if not np.isnan(found.held_out_loss):
        seen += f"; of rows held out {100 * found.held_out_loss:.3g} % of the variance are lost"
    return seen


def least_linear_loss(X: Array, weights: Array, count: int) -> float:
    """Return the mean square of an entry that the best affine maps through `count` numbers lose.

    Examples
    --------
    >>> import numpy as np
    >>> cross = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> least_linear_loss(cross, np.ones(4), 1)
    0.25
    """
    if min(X.shape) > _SMALL:
        return nan
    share = weights / weights.sum()
    rows = np.sqrt(share)[:, None] * (X - share @ X)
    small = rows @ rows.T if len(rows) < rows.shape[1] else rows.T @ rows
    variances = np.linalg.eigvalsh(small)[::-1]
    return float(np.maximum(variances[count:], 0.0).sum() / X.shape[1])
