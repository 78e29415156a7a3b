"""K-means, with a kernel and without, against tslearn, kernlab and scikit-learn."""

from __future__ import annotations

import subprocess
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.cluster import KMeans as Theirs

from benchmarks.datasets import FOLDER
from benchmarks.harness import Case, Row, run
from benchmarks.rivals import kernlab
from mercer import KMeans, certify
from mercer.gram import Need, make_gram
from mercer.kernels import Gaussian, Kernel, Linear
from mercer.problems import Clusters, Partition

NOTE = """The last two columns show the objective and the largest gain of moving one sample,
relative to the objective. Both are computed by the same code. A gain up to 1e-6 indicates a local
minimum. Mercer makes ten starts and finishes each with moves of single samples. tslearn and
kernlab make one start. Their times are multiplied by ten; their objectives are those of the one
start. kernlab fails if a cluster has one sample, so only a successful start is timed. Without the
data sets, samples are drawn from a mixture of Gaussians."""

STARTS = 10
GOAL = 50.0


@dataclass(frozen=True)
class Timed:
    """Labels, and seconds of a clock that is not ours."""

    labels: Any
    seconds: float


def rows(name: str, n: int, d: int, k: int) -> Any:
    """Return rows of a data set, standardised or in [0, 1], or drawn ones of the same shape."""
    file = FOLDER / f"{name}.npz"
    if not file.exists():
        rng = np.random.default_rng(0)
        centres = 1.5 * rng.standard_normal((k, d))
        return centres[rng.integers(k, size=n)] + rng.standard_normal((n, d))
    X = np.asarray(np.load(file)["X_train"], dtype=np.float64)[:n]
    return X / 255.0 if name == "mnist" else (X - X.mean(axis=0)) / X.std(axis=0)


def judge(X: Any, kernel: Kernel, k: int) -> Callable[[Any], str]:
    """Measure partitions, whoever made them."""
    problem = Partition(make_gram(kernel, X, Need.PRODUCTS), k, np.ones(len(X)))

    def judged(answer: Any) -> str:
        labels = getattr(answer, "labels", answer)
        found = certify(problem, Clusters(labels)).quantities
        return f"objective {found.objective:.6g}, gain {max(found.move_gain, 0.0):.0e}"

    return judged


def by_tslearn(X: Any, gamma: float, k: int) -> Timed:
    """Run one start; the Gram is made anew by every fit, so ten fits are ten times one."""
    import time

    from tslearn.clustering import KernelKMeans

    machine = KernelKMeans(
        k, kernel="rbf", kernel_params={"gamma": gamma}, n_init=1, max_iter=300, random_state=0
    )
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = machine.fit(X[:, :, None]).labels_
    return Timed(labels, STARTS * (time.perf_counter() - started))


def by_kernlab(X: Any, gamma: float, k: int) -> Timed:
    """Run one start in R; the clock runs around `kkmeans` alone."""
    script = Path(__file__).with_name("kernlab_kmeans.R")
    with TemporaryDirectory() as name:
        folder = Path(name)
        np.asarray(X, dtype=np.float64).tofile(folder / "X")
        (folder / "shape").write_text(f"{X.shape[0]} {X.shape[1]}")
        subprocess.run(["Rscript", str(script), name, str(gamma), str(k)], check=True)
        seconds = float(np.fromfile(folder / "seconds")[0])
        labels = np.fromfile(folder / "labels", dtype=np.int32) - 1
    return Timed(labels, STARTS * seconds)


def has_tslearn() -> bool:
    """Return whether tslearn is installed."""
    from importlib.util import find_spec

    return find_spec("tslearn") is not None


def with_kernel(n: int, n_rival: int, k: int) -> list[Row]:
    """Compare on the Gaussian kernel; rivals that need minutes get fewer rows."""
    gamma = 1.0 / 16
    kernel = Gaussian(np.sqrt(0.5 / gamma))
    found: list[Row] = []
    for size in sorted({n_rival, n}):
        X = rows("letter", size, 16, k)
        rivals: dict[str, Callable[[], Any]] = {}
        if has_tslearn():
            rivals["tslearn, 1 start x 10"] = lambda X=X: by_tslearn(X, gamma, k)
        if kernlab.available() and size == n_rival:
            rivals["kernlab, 1 start x 10"] = lambda X=X: by_kernlab(X, gamma, k)
        case = Case(
            f"Gaussian, letter {size}, k = {k}, {STARTS} starts",
            lambda X=X: KMeans(k, kernel, n_init=STARTS, random_state=0).fit(X).labels_,
            rivals,
            judge(X, kernel, k),
            dict.fromkeys(rivals, GOAL),
            repeats=3,
            rival_repeats=1,
        )
        found += run(case)
    return found


def linear(name: str, n: int, d: int, k: int) -> list[Row]:
    """Compare ordinary K-means: both make ten starts by k-means++."""
    X = rows(name, n, d, k)
    case = Case(
        f"linear, {name} {len(X)}, k = {k}, {STARTS} starts",
        lambda: KMeans(k, n_init=STARTS, random_state=0).fit(X).labels_,
        {"scikit-learn": lambda: Theirs(k, n_init=STARTS, random_state=0).fit(X).labels_},
        judge(X, Linear(), k),
        {"scikit-learn": 1.0},
    )
    return run(case)


def cases(quick: bool = False) -> list[Row]:
    """Run all comparisons; `quick` shrinks the data."""
    share = 20 if quick else 1
    found = with_kernel(10_000 // share, 2000 // share, 20)
    found += linear("letter", 16_000 // share, 16, 26)
    found += linear("mnist", 10_000 // share, 784, 10)
    return found
