"""Kernels that the user brings: a matrix, a feature map, a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mercer import expression as ex
from mercer.expression import Expression
from mercer.kernels.base import Kernel, proven
from mercer.kernels.inputs import refuse_uncallable


@dataclass(frozen=True, repr=False)
class Precomputed(Kernel):
    """A mark: the machine is given the matrix K in place of X.

    `fit` takes K(train, train), `predict` takes K(test, train). The matrix is believed to be
    positive semidefinite while a machine is fitted; its certificate looks whether it is.

    Examples
    --------
    >>> Precomputed().psd
    True
    """

    def expression(self) -> Expression:
        """Refuse: there is no formula."""
        raise ValueError(
            "Precomputed() stands for a matrix that is already there; it cannot be evaluated on "
            "rows, nor be part of another kernel. Combine the matrices themselves instead, for "
            "example K1 + K2."
        )


@proven
@dataclass(frozen=True, repr=False)
class FromFeatures(Kernel):
    """k(x, y) = <phi(x), phi(y)>. Does not read back from its text.

    Parameters
    ----------
    phi : function
        Maps a block of rows (n, d), dense or CSR as it comes, to their features (n, D).

    Examples
    --------
    >>> import numpy as np
    >>> FromFeatures(np.square)([[1.0, 2.0]], [[3.0, 1.0]]).tolist()
    [[13.0]]
    """

    phi: Callable[[Any], Any]

    def __post_init__(self) -> None:
        refuse_uncallable("FromFeatures", "phi", self.phi)

    def expression(self) -> Expression:
        """Write the dot product of the mapped rows."""
        return ex.Dot((ex.Mapped(self.phi),))


@dataclass(frozen=True, repr=False)
class FromCallable(Kernel):
    """k given by a function of two blocks of rows. Does not read back from its text.

    Parameters
    ----------
    function : function
        `function(X, Y)` gives the matrix (n, m) of two blocks of rows, dense or CSR as they come.
    psd : bool
        Whether the function is believed to be positive semidefinite; `is_valid` tests it on data,
        and certificates do on the training rows.

    Examples
    --------
    >>> FromCallable(lambda X, Y: X @ Y.T)([[1.0, 2.0]], [[3.0, 4.0]]).tolist()
    [[11.0]]
    """

    function: Callable[[Any, Any], Any]
    psd: bool = True

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(
                f"FromCallable: function={self.function!r} must be a function of two blocks of rows"
            )

    def expression(self) -> Expression:
        """Write the function as it is."""
        return ex.Opaque(self.function)
