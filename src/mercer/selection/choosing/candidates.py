"""Kernels worth comparing, each in a pipeline that prepares the rows for it, with its own grid.

From plain to rich: linear, polynomials, Gaussian, Matern, Laplacian, and for tables of several
kinds of columns a sum with a kernel for each kind. Strings are compared by words, and by pieces of
letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from mercer.kernels import Gaussian, Kernel, Laplacian, Linear, Matern, Polynomial, Spectrum
from mercer.points import is_sparse
from mercer.selection.default_grids import typical_distance

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
MOST_WORDS = 20_000  # of a text: the most frequent ones
_PIECES = (3, 4, 5)  # letters


@dataclass(frozen=True, eq=False)
class Candidate:
    """One kernel family.

    Attributes
    ----------
    name : str
        For the table.
    steps : tuple of (name, transformer)
        What prepares the rows.
    kernels : tuple of Kernel
        Members of the family that are tried.
    """

    name: str
    steps: tuple[tuple[str, Any], ...]
    kernels: tuple[Kernel, ...]

    def pipeline(self, machine: Any) -> Pipeline:
        """Put the machine behind the preparation."""
        return Pipeline([*self.steps, ("machine", machine)])

    def grid(self, axes: dict[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
        """Return the points: every kernel with every setting of the machine."""
        own = {f"machine__{name}": values for name, values in axes.items()}
        return {"machine__kernel": self.kernels, **own}


def of_numbers(X: Any) -> list[Candidate]:
    """Return the candidates for rows of numbers."""
    sparse = is_sparse(X)
    scaler = StandardScaler(with_mean=not sparse)
    steps = (("scale", scaler),)
    return families(steps, scaler.fit_transform(X))


def of_strings(rows: Sequence[str]) -> list[Candidate]:
    """Return the candidates for single strings: words, and pieces of letters."""
    pieces = tuple(Spectrum(k).normalized() for k in _PIECES)
    found = [Candidate("spectrum", (), pieces)]
    vectoriser = TfidfVectorizer(sublinear_tf=True, max_features=MOST_WORDS)
    try:
        vectoriser.fit(rows)
    except ValueError:  # no words: sequences of letters, such as genes
        return found
    return [Candidate("linear (words)", (("words", vectoriser),), (Linear(),)), *found]


def families(steps: Any, rows: Any, dense: bool = True) -> list[Candidate]:
    """Return one kernel for all columns, from plain to rich."""
    typical = typical_distance(rows, 2) / 2
    offset = 2.0 * typical**2  # about the mean square of a centred row, as "polynomial" takes it
    polynomials = tuple(offset**-d * Polynomial(d, offset) for d in (2, 3))
    found = [
        Candidate("linear", steps, (Linear(),)),
        Candidate("polynomial", steps, polynomials),
        Candidate("gaussian", steps, tuple(Gaussian(f * typical) for f in FACTORS)),
        Candidate("matern", steps, tuple(Matern(1.5, f * typical) for f in FACTORS)),
    ]
    if dense and not is_sparse(rows):
        middle = typical_distance(rows, 1) / 2
        scales = tuple(Laplacian(f * middle) for f in FACTORS)
        found.append(Candidate("laplacian", steps, scales))
    return found
