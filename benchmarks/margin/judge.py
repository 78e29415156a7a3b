"""One certificate for everybody: LIBSVM-style answers turned into `Many` box programmes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from mercer import certify
from mercer.gram import PartGram, Source
from mercer.gram.evaluated import LazyGram
from mercer.kernels import Gaussian
from mercer.machines.svm import problem as svm
from mercer.problems import Dual, Duals, Many


def judge_svc(X: Any, y: Any, scale: float, C: float) -> Callable[[Any], str]:
    """Return a judge of fitted classifiers, ours or others'."""

    def judge(machine: Any) -> str:
        if hasattr(machine, "certificate_"):
            return text(machine.certificate_.quantities)
        problem, value = pairwise(machine, np.asarray(X, dtype=np.float64), y, scale, C)
        return text(certify(problem, value).quantities)

    return judge


def judge_svr(X: Any, y: Any, scale: float, C: float, eps: float) -> Callable[[Any], str]:
    """Return a judge of fitted regressions."""

    def judge(machine: Any) -> str:
        if hasattr(machine, "certificate_"):
            return text(machine.certificate_.quantities)
        gram = LazyGram(Source(Gaussian(scale).expression(), X))
        problem = svm.svr(gram, y, np.full(len(y), C), eps)
        coef = np.zeros(len(y))
        coef[machine.support_] = np.ravel(machine.dual_coef_)
        value = Dual(coef, float(np.ravel(machine.intercept_)[0]))
        return text(certify(problem, value).quantities)

    return judge


def text(q: Any) -> str:
    """Say how far from the optimum, and where: the dual objective to 8 digits."""
    return f"KKT {q.violation:.1e}, objective {-q.dual:.8g}"


def pairwise(machine: Any, X: Any, y: Any, scale: float, C: float) -> tuple[Many, Duals]:
    """Write a LIBSVM-style one-vs-one answer as box programmes, one for each pair of classes."""
    gram = LazyGram(Source(Gaussian(scale).expression(), X))
    classes, coef = machine.classes_, np.atleast_2d(machine.dual_coef_)
    signed = -1.0 if len(classes) == 2 else 1.0  # for two classes f > 0 means the second
    of_row = np.searchsorted(classes, y)
    of_vector = of_row[machine.support_]
    problems, values = [], []
    for number, (a, b) in enumerate(combinations(range(len(classes)), 2)):
        rows = np.flatnonzero((of_row == a) | (of_row == b))
        spread = np.zeros(len(y))
        for own, other in ((a, b), (b, a)):
            mine = of_vector == own
            spread[machine.support_[mine]] = coef[other - (other > own), mine]
        signs = np.where(of_row[rows] == a, 1.0, -1.0)
        problems.append(svm.svc(PartGram(gram, rows), signs, np.full(len(rows), C)))
        values.append(Dual(signed * spread[rows], signed * float(machine.intercept_[number])))
    return Many(tuple(problems)), Duals(tuple(values))
