"""Directions to look along: random, principal, discriminant, non-Gaussian, or one's own.

Most projections of many columns look Gaussian (Diaconis and Freedman, Asymptotics of graphical
projection pursuit, Annals of Statistics 12 (1984)), whatever the rows are: directions are
interesting where they do not. `ProjectionPursuit` looks for these, from several starts, and gives
them one after another, the farthest from Gaussian first.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.array_types import Array
from mercer.machines import PCA, FisherDiscriminant, ProjectionPursuit
from mercer.points import is_sparse
from mercer.problems.independent.contrasts import LogCosh

KINDS = ("random", "principal", "discriminant", "non_gaussian")
_MOST = 20  # principal components that directions are sought among: more need more rows
_SLOPE = 1e-4  # of the pursuit, radians: nobody sees less


@dataclass(frozen=True, eq=False)
class Directions:
    """Rows along some directions: scores = (rows - mean) @ weights."""

    mean: Array
    weights: Array
    scores: Array
    names: tuple[str, ...]


def directions_of(
    display: str, X: Any, y: Any, kind: Any, count: int, random_state: int = 0
) -> Directions:
    """Return so many directions of a kind, or those of an array (k, d), and rows along them."""
    rows = _numbers(display, X)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(
                f"{display}: there are no {kind!r} directions; take one of {', '.join(KINDS)}, or "
                "an array with a direction in each row"
            )
        mean, weights, names = _FIND[kind](display, rows, y, count, random_state)
    else:
        weights = np.atleast_2d(np.asarray(kind, dtype=np.float64)).T
        if weights.shape[0] != rows.shape[1]:
            raise ValueError(
                f"{display}: directions have {weights.shape[0]} entries, rows have {rows.shape[1]}"
            )
        mean = rows.mean(axis=0)
        names = [f"direction {k}" for k in range(weights.shape[1])]
    if weights.shape[1] < count:
        raise ValueError(_too_few(display, kind, weights.shape[1], count))
    weights, names = weights[:, :count], names[:count]
    return Directions(mean, weights, (rows - mean) @ weights, tuple(names))


def non_gaussianity(scores: Array) -> Array:
    """Return how far from Gaussian each column looks: (E log cosh z - that of a Gaussian)^2.

    An approximation of negentropy (Hyvarinen, IEEE Transactions on Neural Networks 10 (1999)).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> bell, coin = rng.standard_normal(5000), rng.choice([-1.0, 1.0], 5000)
    >>> a, b = non_gaussianity(np.column_stack([bell, coin]))
    >>> bool(a < 1e-4 < 1e-3 < b)
    True
    """
    spread = scores.std(axis=0)
    z = (scores - scores.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    excess = LogCosh().value(z).mean(axis=0) - LogCosh.gaussian
    return np.asarray(excess**2)


def _numbers(display: str, X: Any) -> Array:
    try:
        rows = X.toarray() if is_sparse(X) else np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{display}: directions are weighted sums of columns, which must be numbers; leave "
            "the others out, or pass rows of a TablePreparation"
        ) from error
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise ValueError(f"{display}: X must be a table of finite numbers; fill the gaps first")
    return np.asarray(rows, dtype=np.float64)


def _random(display: str, rows: Array, y: Any, count: int, seed: int) -> Any:
    d = rows.shape[1]
    # a row for each: the first ones are the same however many are asked for
    drawn = np.random.default_rng(seed).standard_normal((min(count, d), d))
    weights, _ = np.linalg.qr(drawn.T)
    return rows.mean(axis=0), weights, [f"random direction {k + 1}" for k in range(len(weights.T))]


def _principal(display: str, rows: Array, y: Any, count: int, seed: int) -> Any:
    machine = PCA(n_components=min(count, *rows.shape)).fit(rows)
    shares = machine.explained_variance_ratio_
    names = [f"principal component {k + 1} ({100 * s:.0f} %)" for k, s in enumerate(shares)]
    return machine.mean_, machine.components_.T, names


def _discriminant(display: str, rows: Array, y: Any, count: int, seed: int) -> Any:
    if y is None:
        raise ValueError(f"{display}: discriminant directions need labels, y=")
    machine = FisherDiscriminant().fit(rows, y)
    scores = machine.transform(rows)
    # the directions themselves, also where the machine works with rows in place of columns
    centred = rows - rows.mean(axis=0)
    weights = np.linalg.lstsq(centred, scores - scores.mean(axis=0), rcond=None)[0]
    names = [f"discriminant direction {k + 1}" for k in range(weights.shape[1])]
    return rows.mean(axis=0), weights, names


def _non_gaussian(display: str, rows: Array, y: Any, count: int, seed: int) -> Any:
    machine = PCA(n_components=min(_MOST, rows.shape[1], len(rows) - 1)).fit(rows)
    values = machine.explained_variance_
    if not values[0] > 0:
        raise ValueError(f"{display}: all rows are equal, and look alike from everywhere")
    axes = machine.components_[values > 1e-10 * values[0]].T
    with warnings.catch_warnings():
        # of a search that was cut short: a picture needs a direction, not a proof
        warnings.simplefilter("ignore", ConvergenceWarning)
        pursuit = ProjectionPursuit(min(count, axes.shape[1]), tol=_SLOPE, random_state=seed)
        pursuit.fit((rows - machine.mean_) @ axes)
    weights = axes @ pursuit.components_.T * np.sqrt(1.0 - 1.0 / len(rows))  # as whitening does
    names = [f"non-Gaussian direction {k + 1}" for k in range(weights.shape[1])]
    return machine.mean_, weights, names


_FIND = dict(zip(KINDS, (_random, _principal, _discriminant, _non_gaussian), strict=True))


def _too_few(display: str, kind: Any, have: int, count: int) -> str:
    text = f"{display}: {count} directions are asked for, but there "
    text += "is 1" if have == 1 else f"are {have}"
    if isinstance(kind, str) and kind == "discriminant":
        text += " (classes less one)"
    return text + ("; ProjectionHistogramDisplay draws one" if have == 1 else "")
