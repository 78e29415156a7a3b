"""What a certificate is, and `certify`: judge an answer from the problem alone.

Nothing from the inside of a solver is used: K is evaluated anew in float64 from the points. So the
answer of another library can be judged by the same code.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import singledispatch
from typing import Any

from mercer.html import page


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
        return "\n".join([f"{verdict} (tol {self.tol:.1e}): {self.statement}", *lines])

    def _repr_html_(self) -> str:
        verdict = "certified" if self.ok else "NOT certified"
        numbers = {name.replace("_", " "): _show(x) for name, x in asdict(self.quantities).items()}
        return page(f"{verdict} (tol {self.tol:.1e})", numbers, self.statement)


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
    >>> from mercer.problems import Dual, svm
    >>> X, y = np.array([[0.0], [2.0]]), np.array([-1.0, 1.0])
    >>> problem = svm.svc(make_gram(Gaussian(1.0), X, Need.ROWS), y, C=np.full(2, 10.0))
    >>> alpha = 1 / (1 - np.exp(-2.0))  # two points: the margin is known in closed form
    >>> certify(problem, Dual(alpha * y, 0.0)).ok
    True
    """
    raise TypeError(f"no certificate for {type(problem).__name__}")
