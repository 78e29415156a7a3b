"""The eigenproblem K v = m v of a Gram, for its largest eigenpairs, and its solution `Modes`."""

from __future__ import annotations

from dataclasses import dataclass

from mercer.arguments import renamed
from mercer.array_types import Array
from mercer.gram import Gram


@dataclass(frozen=True, eq=False)
class Modes:
    """An answer to an `Eigenproblem`.

    Attributes
    ----------
    values : (k,) array
        Eigenvalues, largest first.
    vectors : (n, k) array
        Orthonormal eigenvectors; in each, the entry of largest magnitude is positive.
    """

    values: Array
    vectors: Array


@dataclass(frozen=True, eq=False)
class Eigenproblem:
    """The `count` largest eigenpairs of a Gram.

    Attributes
    ----------
    gram : Gram
        K; wrap it in `CenteredGram` for principal components.
    count : int
        How many pairs.
    known : (n, c) array or None
        Orthonormal eigenvectors that are known already: only pairs orthogonal to them are asked
        for.
    """

    gram: Gram
    count: int
    known: Array | None = None

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"Eigenproblem: count={self.count} must be at least 1")

    @property
    def known_count(self) -> int:
        """How many eigenvectors are known."""
        return 0 if self.known is None else int(self.known.shape[1])

    @property
    def n_pairs(self) -> int:
        """How many pairs there are to find: not more than vectors outside the known ones."""
        return min(self.count, self.gram.shape[0] - self.known_count)

    wanted = renamed("n_pairs", "wanted")
