"""Kernel principal components: `fit` against the three eigensolvers of scikit-learn.

python -m benchmarks.projection.pca             every case
python -m benchmarks.projection.pca 10000       cases whose name contains the word
"""

from __future__ import annotations

import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.decomposition import KernelPCA

import mercer
from benchmarks import datasets
from benchmarks.arithmetic.memory import peak
from benchmarks.harness import Case, Row, as_table, run
from mercer.certificates import Certificate, certify
from mercer.gram import CenteredGram, Need, make_gram
from mercer.kernels import Gaussian
from mercer.problems import Eigenproblem, Modes
from mercer.resources import format_bytes

NOTE = """One certificate verifies all eigenvalues and eigenvectors in float64, from the samples
and outside the measured time. "residual" is the largest |K v - m v| relative to its eigenvalue. At
these sizes, scikit-learn uses the dense decomposition by default. Its randomized solver makes a
fixed number of iterations and does not report its accuracy.

*Distance from the lower bound.* A pass multiplies a stored float32 matrix of 10000 rows by a block
of 16 vectors. It takes 3.2 Gflop (15 ms at the peak of two cores) and reads one triangle, 200 MB
(5 ms). A fit makes ten passes, writes the matrix once and keeps the vectors orthogonal."""


@dataclass(frozen=True)
class Fit:
    """A comparison: rows, components, what our residuals must reach."""

    rows: int
    count: int
    tol: float
    goals: dict[str, float]

    @property
    def name(self) -> str:
        """Say what is done."""
        return f"letter {self.rows}, {self.count} components, residual {self.tol:.0e}"


FITS = [
    Fit(5000, 10, 1e-5, {"dense": 60, "arpack": 6}),
    Fit(5000, 10, 1e-8, {"dense": 30}),
    Fit(10000, 20, 1e-5, {"dense": 60, "arpack": 6}),
    Fit(10000, 20, 1e-8, {"dense": 30}),
]
SOLVERS = ("dense", "arpack", "randomized")  # of scikit-learn; the default here is dense
WIDTH = 8**0.5  # gamma = 1/16, as many columns as letter has


def ours(X: Any, count: int, tol: float) -> Modes:
    """Fit Mercer's machine."""
    modes = mercer.PCA(count, kernel=Gaussian(WIDTH), tol=tol).fit(X).solution_.value
    assert isinstance(modes, Modes)
    return modes


def theirs(X: Any, count: int, solver: str) -> Modes:
    """Fit scikit-learn's machine."""
    machine = KernelPCA(
        count, kernel="rbf", gamma=1 / (2 * WIDTH**2), eigen_solver=solver, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine.fit(X)
    return Modes(machine.eigenvalues_, machine.eigenvectors_)


def judge(X: Any, count: int, modes: Modes, tol: float) -> Certificate:
    """Certify eigenpairs, whoever found them."""
    gram = make_gram(Gaussian(WIDTH), X, Need.PASSES, dtype=np.float32)
    return certify(Eigenproblem(CenteredGram(gram), count), modes, tol)


def shown(certificate: Certificate) -> str:
    """Write a judgement into the table."""
    verdict = "certified" if certificate.ok else "NOT certified"
    return f"{verdict}, residual {certificate.quantities.residual:.0e}"


def compare(fit: Fit) -> list[Row]:
    """Let the machines take turns."""
    X, _ = datasets.real("letter", fit.rows)
    rivals: dict[str, Callable[[], Any]] = {
        name: partial(theirs, X, fit.count, name) for name in SOLVERS
    }
    case = Case(
        fit.name,
        lambda: ours(X, fit.count, fit.tol),
        rivals,
        lambda modes: shown(judge(X, fit.count, modes, fit.tol)),
        fit.goals,
        repeats=5,
        rival_repeats=1,
    )
    return run(case)


def in_little_memory(rows: int, count: int, tol: float, budget: str, out: Any) -> None:
    """Fit many rows, nothing of their matrix stored; tell seconds, memory and judgement."""
    X, _ = datasets.real("kin40k", rows)
    ours(X[:1000], count, tol)  # load everything once
    before, started = peak(), time.perf_counter()
    with mercer.config(memory=budget):
        modes = ours(X, count, tol)
        seconds, taken = time.perf_counter() - started, peak() - before
        out.put((seconds, taken, shown(judge(X, count, modes, tol))))


def large(rows: int = 30_000, count: int = 20, tol: float = 1e-6, budget: str = "2 GB") -> str:
    """Run the large fit in a process of its own."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=in_little_memory, args=(rows, count, tol, budget, queue))
    process.start()
    seconds, taken, judged = queue.get()
    process.join()
    line = (
        f"kin40k {rows}, {count} components, budget {budget}: {seconds:.1f} s [{judged}]; memory "
        f"grew by {format_bytes(taken)}, the matrix would take {format_bytes(8.0 * rows * rows)}."
    )
    print(line, flush=True)
    return line


def cases(wanted: str = "") -> str:
    """Run all comparisons whose data are here."""
    rows: list[Row] = []
    if datasets.available("letter"):
        for fit in FITS:
            if wanted in fit.name:
                rows += compare(fit)
    text = as_table(rows)
    if wanted in "kin40k 30000" and datasets.available("kin40k"):
        text += "\n\n" + large()
    return text


if __name__ == "__main__":
    print(cases(" ".join(sys.argv[1:])))
