"""Class `Certificate`, the function `certify`, certificates of streams, and safe norms."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import singledispatch
from math import isnan
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.html import page

# --- base ----------------------------------------------------------------------------------------
#
# What a certificate is, and `certify`: judge an answer from the problem alone.
#
# Nothing from the inside of a solver is used: K is evaluated anew in float64 from the points. So
# the answer of another library can be judged by the same code.

VACUOUS = 0.995  # relative gaps from here on, 100 % as people round, say nothing of an objective
# people take a proof of the optimum for praise of the model
_SCOPE = "(of the problem as stated; whether its kernel and parameters suit the data, tuning says)"


@dataclass(frozen=True)
class Certificate:
    """A judgement of an answer.

    Attributes
    ----------
    ok : bool
        Whether the answer is as good as `tol` asks.
    quantities : dataclass
        What was measured, of the type that belongs to the problem.
    tol : float
        What was asked.
    statement : str
        The judgement in words.
    """

    ok: bool
    quantities: Any
    tol: float
    statement: str

    def __str__(self) -> str:
        numbers = asdict(self.quantities)
        width = max(map(len, numbers))
        lines = [f"  {name.replace('_', ' '):<{width}}  {_show(x)}" for name, x in numbers.items()]
        verdict = "certified" if self.ok else "NOT certified"
        return "\n".join(
            [f"{verdict} (tol {self.tol:.1e}): {self.statement}", *lines, f"  {_SCOPE}"]
        )

    def _repr_html_(self) -> str:
        verdict = "certified" if self.ok else "NOT certified"
        numbers = {name.replace("_", " "): _show(x) for name, x in asdict(self.quantities).items()}
        return page(
            f"{verdict} (tol {self.tol:.1e})", numbers, f"{self.statement} {_SCOPE.strip()}"
        )


def _show(x: Any) -> str:
    return f"{x:.6g}" if isinstance(x, float) else str(x)


@singledispatch
def certify(problem: Any, value: Any, tol: float | None = None) -> Certificate:
    """Judge an answer, whoever produced it, from the problem and the answer alone.

    Parameters
    ----------
    problem : LinearSystem, RidgePath, FoldedRidgePath, Eigenproblem or BoxQP
        What was asked.
    value : Coefficients, PathValue, FoldedPathValue, Modes or Dual
        The answer.
    tol : float, optional
        How good it must be; each kind of problem has its own default.

    Returns
    -------
    Certificate
        Measured quantities, a verdict and a statement in words.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import Need, make_gram
    >>> from mercer.kernels import Gaussian
    >>> from mercer.problems import Dual
    >>> from mercer.machines.svm import problem as svm
    >>> X, y = np.array([[0.0], [2.0]]), np.array([-1.0, 1.0])
    >>> problem = svm.svc(make_gram(Gaussian(1.0), X, Need.ROWS), y, C=np.full(2, 10.0))
    >>> alpha = 1 / (1 - np.exp(-2.0))  # two points: the margin is known in closed form
    >>> certify(problem, Dual(alpha * y, 0.0)).ok
    True
    """
    raise TypeError(f"no certificate for {type(problem).__name__}")


# --- stream --------------------------------------------------------------------------------------
#
# What can be said of a stream whose rows are gone: how they were met, and what follows.


@dataclass(frozen=True)
class StreamQuantities:
    """Measures of a machine that learned from a stream.

    Attributes
    ----------
    rows : float
        Rows seen, or their total weight.
    mean_loss : float
        Mean loss of the rows, each scored before it was learned.
    """

    rows: float
    mean_loss: float


def of_stream(rows: float, mean_loss: float) -> Certificate:
    """State what is known of a stream: nothing is proven, so the verdict is never that it is."""
    statement = (
        "the rows of a stream are not kept, so nothing can be proven about them; scored before it "
        f"was learned, a row had a mean loss of {mean_loss:.3g}"
    )
    return Certificate(False, StreamQuantities(rows, mean_loss), 0.0, statement)


# --- norms ---------------------------------------------------------------------------------------
#
# Sizes of errors: norms that neither overflow nor vanish, and maxima that no NaN slips through.


def norms(A: Array) -> Array:
    """Return the norms of columns, also where squares would overflow or vanish."""
    largest = np.abs(A).max(axis=0, initial=0.0)
    return np.asarray(largest * np.linalg.norm(A / np.where(largest > 0, largest, 1.0), axis=0))


def larger(one: float, other: float) -> float:
    """Return the larger of two errors: infinity where either is no number, unlike `max`.

    Examples
    --------
    >>> max(0.5, float("nan")), larger(0.5, float("nan"))
    (0.5, inf)
    """
    return float("inf") if isnan(one) or isnan(other) else max(one, other)
