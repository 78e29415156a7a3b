"""Support vector machines: total time of `fit` against scikit-learn and its Intel extension.

python -m benchmarks.margin.svm             every case
python -m benchmarks.margin.svm letter      cases whose name contains the word
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Thread
from typing import Any

import numpy as np
from sklearn import svm as theirs
from sklearn.datasets import load_iris

import mercer
from benchmarks import datasets
from benchmarks.harness import Case, Row, as_table, run
from benchmarks.margin.judge import judge_svc, judge_svr
from benchmarks.rivals import kernlab
from mercer import SVC, SVR
from mercer.kernels import Gaussian
from mercer.resources import thread_limit

CACHE = 2000  # megabytes for the rivals' caches

NOTE = """All fits use LIBSVM's criterion 1e-3. "KKT" is the largest violation, "objective" the
dual objective (lower is better). Both are recomputed in float64 from data and coefficients by the
same code, outside the measured time. Mercer's certificate is computed when it is first read, and
is not part of the time of `fit`; the rivals have none.

*Distance from the lower bound.* 20000 x 50 at C = 1: the matrix takes 20 Gflop and 1.6 GB of
stores. At the measured rates, these take 0.09 s and 0.03 s, which overlap in part. The matrix took
0.16 s. About 17000 iterations read two rows of 80 kB each, 2.7 GB in 0.145 s, or 19 GB/s. The rest
is validation, merging of equal samples and the float64 check (0.03 s). For large C, more than a
million iterations on matrices of about 2000 rows take about 1 us each (2300 columns, one thread).
For pendigits and iris, the matrix and Python's overhead dominate."""


@dataclass(frozen=True)
class Fit:
    """A classification benchmark: data, parameters, goals against both rivals."""

    name: str
    data: Callable[[], tuple[Any, Any]]
    gamma: float
    C: float
    goals: tuple[float, float]
    needs: str | None = None
    memory: str | None = None
    repeats: int = 5
    rival_repeats: int = 1
    others: bool = False  # also the rivals that take minutes

    @property
    def scale(self) -> float:
        """Return our name for gamma."""
        return float(1 / np.sqrt(2 * self.gamma))


FITS = [
    Fit("binary 20000 x 50, C = 1", datasets.synthetic, 1 / 50, 1, (40, 6), others=True),
    Fit("binary 20000 x 50, C = 1000", datasets.synthetic, 1 / 50, 1000, (25, 10)),
    Fit(
        "covertype 20000 binary, C = 10",
        lambda: datasets.covertype(20000, binary=True),
        1 / 54,
        10,
        (50, 7),
        "covertype_part",
    ),
    Fit(
        "covertype 20000 binary, C = 1000",
        lambda: datasets.covertype(20000, binary=True),
        1 / 54,
        1000,
        (20, 7),
        "covertype_part",
        repeats=3,
    ),
    Fit(
        "covertype 20000, 7 classes, C = 10",
        lambda: datasets.covertype(20000, binary=False),
        1 / 54,
        10,
        (35, 10),
        "covertype_part",
    ),
    Fit(
        "letter 16000, 26 classes, C = 10",
        lambda: datasets.real("letter"),
        1 / 16,
        10,
        (12, 40),
        "letter",
    ),
    Fit(
        "MNIST 15000, C = 5, gamma = 0.02",
        lambda: datasets.mnist(15000),
        0.02,
        5,
        (40, 9),
        "mnist",
    ),
    Fit(
        "MNIST 60000, C = 5, gamma = 0.02",
        lambda: datasets.mnist(60000),
        0.02,
        5,
        (40, 9),
        "mnist",
        repeats=1,
    ),
    Fit(
        "shuttle 43500, 7 classes, C = 10",
        lambda: datasets.real("shuttle"),
        1 / 9,
        10,
        (6, 40),
        "shuttle",
    ),
    Fit(
        "covertype 40000 binary, C = 10, 200 MB for the kernel",
        lambda: datasets.covertype(40000, binary=True),
        1 / 54,
        10,
        (30, 5),
        "covertype_part",
        memory="200 MB",
        repeats=3,
    ),
    Fit(
        "pendigits 7494, 10 classes, C = 10",
        lambda: datasets.real("pendigits"),
        1 / 16,
        10,
        (5, 5),
        "pendigits",
        repeats=9,
        rival_repeats=3,
    ),
    Fit(
        "iris 150, 3 classes, C = 1",
        lambda: load_iris(return_X_y=True),
        0.25,
        1,
        (1, 1),
        repeats=51,
        rival_repeats=51,
    ),
]


def classification(fit: Fit) -> list[Row]:
    """Fit everybody on the same rows."""
    X, y = fit.data()
    single = np.asarray(X, dtype=np.float32)
    cache = CACHE if fit.memory is None else 200

    def ours() -> Any:
        with mercer.config(memory=fit.memory):
            return SVC(Gaussian(fit.scale), C=fit.C).fit(X, y)

    options = {"gamma": fit.gamma, "C": fit.C, "cache_size": cache}
    rivals = {"scikit-learn": lambda: theirs.SVC(**options).fit(X, y)}
    goals = {"scikit-learn": fit.goals[0]}
    extension = intel("SVC")
    if extension is not None:
        rivals["intelex, float32"] = lambda: extension(**options).fit(single, y)
        rivals["intelex, float64"] = lambda: extension(**options).fit(np.float64(X), y)
        goals |= {"intelex, float32": fit.goals[1], "intelex, float64": fit.goals[1]}
    if fit.others:
        rivals |= others(X, y, fit)
    return run(
        Case(
            fit.name,
            ours,
            rivals,
            judge_svc(X, y, fit.scale, fit.C),
            goals,
            fit.repeats,
            fit.rival_repeats,
        )
    )


def others(X: Any, y: Any, fit: Fit) -> dict[str, Callable[[], Any]]:
    """Return the rivals that are installed here, slow ones."""
    found: dict[str, Callable[[], Any]] = {}
    if kernlab.available():
        found["kernlab (R)"] = lambda: kernlab.fit(X, y, fit.gamma, fit.C)
    try:
        import thundersvm
    except (ImportError, OSError):
        return found
    options = {"gamma": fit.gamma, "C": fit.C, "n_jobs": thread_limit()}

    def thunder() -> Any:
        started = time.perf_counter()
        machine = thundersvm.SVC(**options).fit(X, y)
        seconds = time.perf_counter() - started
        coef = np.ravel(machine.dual_coef_)
        # positive for the second class, as everybody else's
        sign = 1.0 if coef[y[machine.support_] == y.max()].sum() > 0 else -1.0
        offset = sign * np.ravel(machine.intercept_)[:1]
        return kernlab.Answer(np.unique(y), machine.support_, sign * coef[None], offset, seconds)

    found["thundersvm-cpu"] = thunder
    return found


def regression(n: int = 15000, C: float = 10.0, eps: float = 0.05) -> list[Row]:
    """Fit a robot arm's kinematics."""
    X, y = datasets.real("kin40k", n)
    y = (y - y.mean()) / y.std()
    gamma, scale = 1 / 8, 2.0
    options = {"gamma": gamma, "C": C, "epsilon": eps, "cache_size": CACHE}
    rivals = {"scikit-learn": lambda: theirs.SVR(**options).fit(X, y)}
    goals = {"scikit-learn": 22.0}
    extension = intel("SVR")
    if extension is not None:
        rivals["intelex, float32"] = lambda: extension(**options).fit(np.float32(X), np.float32(y))
        rivals["intelex, float64"] = lambda: extension(**options).fit(X, y)
        goals |= {"intelex, float32": 11.0, "intelex, float64": 11.0}
    return run(
        Case(
            f"SVR kin40k {n}, C = {C:g}, eps = {eps:g}",
            lambda: SVR(Gaussian(scale), C=C, epsilon=eps).fit(X, y),
            rivals,
            judge_svr(X, y, scale, C, eps),
            goals,
            rival_repeats=1,
        )
    )


def accuracy() -> list[Row]:
    """Ask for a relative duality gap of 1e-9 instead of LIBSVM's criterion."""
    X, y = datasets.covertype(20000, binary=True)
    scale = float(np.sqrt(27))

    def fit(**options: Any) -> Any:
        return SVC(Gaussian(scale), C=10.0, **options).fit(X, y)

    return run(
        Case(
            "covertype 20000 binary, C = 10, relative gap 1e-9",
            lambda: fit(tol=1e-9, criterion="gap"),
            {"Mercer, KKT 1e-3": fit},
            lambda machine: f"relative gap {machine.certificate_.quantities.relative_gap:.0e}",
            {"Mercer, KKT 1e-3": 0.5},
        )
    )


def prediction(rows: int = 5000) -> list[Row]:
    """Evaluate the decision function of a machine with many support vectors."""
    X, y = datasets.synthetic(20000 + rows)
    Z, X, y = X[-rows:], X[:-rows], y[:-rows]
    machine = SVC(Gaussian(5.0)).fit(X, y)
    libsvm = theirs.SVC(gamma=1 / 50, cache_size=CACHE).fit(X, y)
    truth = libsvm.decision_function(Z)
    rivals = {"scikit-learn": lambda: libsvm.decision_function(Z)}
    goals = {"scikit-learn": 10.0}
    extension = intel("SVC")
    if extension is not None:
        single = extension(gamma=1 / 50).fit(np.float32(X), y)
        double = extension(gamma=1 / 50).fit(X, y)
        rivals["intelex, float32"] = lambda: single.decision_function(np.float32(Z))
        rivals["intelex, float64"] = lambda: double.decision_function(Z)
        goals |= {"intelex, float32": 1.5, "intelex, float64": 1.5}
    return run(
        Case(
            f"predict {rows} rows, {len(machine.support_)} support vectors",
            lambda: machine.decision_function(Z),
            rivals,
            lambda values: f"largest difference {np.abs(values - truth).max():.0e}",
            goals,
            repeats=7,
            rival_repeats=3,
        )
    )


def two_at_once() -> list[Row]:
    """Fit twice at the same time on the same cores."""
    X, y = datasets.synthetic()

    def fit() -> None:
        SVC(Gaussian(5.0)).fit(X, y)

    def both() -> float:
        threads = [Thread(target=fit) for _ in range(2)]
        started = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - started

    fit()
    return run(
        Case("two fits at once", both, {"Mercer, one fit": fit}, goals={"Mercer, one fit": 0.5})
    )


def intel(name: str) -> Any:
    """Return the extension's class where it is installed."""
    try:
        from sklearnex import svm
    except ImportError:
        return None
    return getattr(svm, name)


def cases(wanted: str = "") -> list[Row]:
    """Run all comparisons whose data are here."""
    rows = []
    for fit in FITS:
        if wanted in fit.name and (fit.needs is None or datasets.available(fit.needs)):
            rows += classification(fit)
    others = {
        "SVR kin40k": (regression, "kin40k"),
        "gap accuracy": (accuracy, "covertype_part"),
        "predict": (prediction, None),
        "two fits at once": (two_at_once, None),
    }
    for name, (work, needs) in others.items():
        if wanted in name and (needs is None or datasets.available(needs)):
            rows += work()
    return rows


if __name__ == "__main__":
    print(as_table(cases(" ".join(sys.argv[1:]))))
