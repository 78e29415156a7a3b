"""Peak memory of every machine under a small budget, each fit in a process of its own.

python -m benchmarks.arithmetic.budgets          16000 rows, 120 MB: as docs/reliability.md has it
python -m benchmarks.arithmetic.budgets 3000 20  fewer rows, fewer MB

A process that has made the data and loaded the library is forked for each fit, so the growth of
its peak is what the fit took. Small fits of the same machine come first, and pages of files that
the process has mapped are read: code that is touched for the first time is not what a budget is
about.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import pickle
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

import mercer
from mercer import selection
from mercer.compat import sklearn as compat
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.resources import format_bytes
from mercer.solvers import (
    Cholesky,
    ConjugateGradient,
    Eigh,
    Lanczos,
    NewtonRisk,
)

MB = 10**6
_WARM = 400  # rows of the fits that come first
_LITTLE = 1_100_000  # bytes that fifty landmarks of these rows fit into, and their matrix does not
_COLUMNS = 5
_POPULATE_READ = 22  # MADV_POPULATE_READ of Linux 5.14; older systems refuse it, and count pages
# What a fit may hold beside its budget, which is about matrices: a fixed part (blocks are rounded
# up to huge pages of 2 MB, an allocator keeps some pages, each thread has a stack), vectors of one
# number for each row, and copies of the data (checked, sorted, kept for the certificate).
_FIXED = 8 * MB
_VECTORS = 60
_COPIES = 8


@dataclass(frozen=True)
class Data:
    """Rows, and what can be learnt of them: two classes, three classes, numbers, counts."""

    X: Any
    two: Any
    three: Any
    target: Any
    counts: Any

    @staticmethod
    def of(n: int) -> Data:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, _COLUMNS))
        noise = 0.3 * rng.standard_normal(n)
        two = np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 + noise > 0, 1, -1)
        three = np.digitize(X[:, 0] + noise, [-0.5, 0.5])
        target = np.sin(X[:, 0]) + noise
        return Data(X, two, three, target, rng.poisson(1.0, (n, _COLUMNS)))


@dataclass(frozen=True)
class Peak:
    """What was measured of one fit: bytes by which each call raised the peak, and its ending."""

    machine: str
    form: str
    fit: int
    ending: str
    seconds: float
    certificate: int = 0
    predict: int = 0
    pickled: int = 0

    @property
    def most(self) -> int:
        """The largest growth of all calls."""
        return max(self.fit, self.certificate, self.predict, self.pickled)


def allowance(n: int) -> int:
    """Return the bytes that a fit of n rows may take beside its budget."""
    return _FIXED + 8 * n * (_VECTORS + _COPIES * _COLUMNS)


def _supervised(machine: Any, name: str) -> Callable[[Data], Any]:
    from sklearn.base import clone

    return lambda data: clone(machine).fit(data.X, getattr(data, name))


def _alone(machine: Any, name: str = "X") -> Callable[[Data], Any]:
    from sklearn.base import clone

    return lambda data: clone(machine).fit(getattr(data, name))


def cases() -> Iterator[tuple[str, str, Callable[[Data], Any]]]:
    """Name every machine, every form of it, and how it is fitted."""
    yield from _margins()
    yield from _risks()
    yield from _spectra()
    yield from _groups()
    yield from _densities()
    yield from _choices()
    yield from _compat()


def _margins() -> Iterator[tuple[str, str, Callable[[Data], Any]]]:
    kernel = Gaussian(1.0)
    forms: dict[str, dict[str, Any]] = {
        "": {},
        "squared slack": {"slack": "l2"},
        "nu": {"nu": 0.2},
        "C = 100": {"C": 100.0},
        "gap": {"criterion": "gap"},
        "squared slack, gap": {"slack": "l2", "criterion": "gap"},
        "probability": {"probability": True},
        "squared slack, probability": {"slack": "l2", "probability": True},
    }
    for form, options in forms.items():
        yield "SVC", form, _supervised(mercer.SVC(kernel, **options), "two")
    for scheme in ("ovo", "ovr"):
        for slack in ("l1", "l2"):
            machine = mercer.SVC(kernel, slack=slack, multiclass=scheme)
            yield "SVC", f"three classes, {scheme}, {slack}", _supervised(machine, "three")
    yield "SVC", "polynomial", _supervised(mercer.SVC(Polynomial(3)), "two")
    yield "SVC", "linear", _supervised(mercer.SVC(Linear()), "two")
    tubes: dict[str, dict[str, Any]] = {
        "": {},
        "squared tube": {"tube": "l2"},
        "squared tube, no width": {"tube": "l2", "epsilon": 0.0},
        "nu": {"nu": 0.3},
        "gap": {"criterion": "gap"},
        "nu, gap": {"nu": 0.3, "criterion": "gap"},
    }
    for form, options in tubes.items():
        yield "SVR", form, _supervised(mercer.SVR(kernel, **options), "target")
    yield "OneClassSVM", "nu = 0.1", _alone(mercer.OneClassSVM(kernel, nu=0.1))
    yield "OneClassSVM", "nu = 0.5", _alone(mercer.OneClassSVM(kernel, nu=0.5))
    yield "EnclosingBall", "", _alone(mercer.EnclosingBall(kernel))
    yield "EnclosingBall", "nu = 0.2", _alone(mercer.EnclosingBall(kernel, nu=0.2))


def _risks() -> Iterator[tuple[str, str, Callable[[Data], Any]]]:
    kernel = Gaussian(1.0)
    for form, options in {
        "": {},
        "leave-one-out": {"penalty": "loo"},
        "cholesky": {"solver": Cholesky()},
        "conjugate gradient": {"solver": ConjugateGradient()},
        "small penalty": {"penalty": 0.01},
    }.items():
        yield (
            "KernelRidge",
            form,
            _supervised(mercer.KernelRidge(kernel=kernel, **options), "target"),
        )
    process = mercer.GaussianProcess(kernel)
    yield "GaussianProcess", "", _supervised(process, "target")
    tasks = mercer.MultiTaskGaussianProcess(kernel)
    yield "MultiTaskGaussianProcess", "", _supervised(tasks, "target")
    classes = mercer.GaussianProcessClassifier(kernel)
    yield "GaussianProcessClassifier", "", _supervised(classes, "three")
    process = mercer.GaussianProcess(1.0 * kernel, optimize=True)
    yield "GaussianProcess", "learnt", _supervised(process, "target")
    for form, options in {
        "": {},
        "newton": {"solver": NewtonRisk()},
    }.items():
        machine = mercer.LogisticRegression(kernel, **options)
        yield "LogisticRegression", form, _supervised(machine, "two")
    machine = mercer.LogisticRegression(kernel)
    yield "LogisticRegression", "three classes", _supervised(machine, "three")
    yield "Perceptron", "", _supervised(mercer.Perceptron(kernel, max_epochs=3), "two")
    voted = mercer.Perceptron(kernel, max_epochs=2, answer="voted")
    yield "Perceptron", "voted", _supervised(voted, "two")
    yield "NearestMean", "", _supervised(mercer.NearestMean(kernel), "three")
    yield "NearestNeighbors", "", _supervised(mercer.NearestNeighbors(kernel=kernel), "three")
    chosen = mercer.NearestNeighbors(kernel=kernel, n_neighbors="loo")
    yield "NearestNeighbors", "leave-one-out", _supervised(chosen, "three")
    yield "FisherDiscriminant", "", _supervised(mercer.FisherDiscriminant(kernel), "three")


def _spectra() -> Iterator[tuple[str, str, Callable[[Data], Any]]]:
    kernel = Gaussian(1.0)
    yield "PCA", "5 components", _alone(mercer.PCA(5, kernel=kernel))
    yield "PCA", "all components", _alone(mercer.PCA(kernel=kernel))
    yield "PCA", "a share", _alone(mercer.PCA(0.5, kernel=kernel))
    yield "PCA", "eigh", _alone(mercer.PCA(5, kernel=kernel, solver=Eigh()))
    yield "PCA", "lanczos", _alone(mercer.PCA(5, kernel=kernel, solver=Lanczos()))
    yield "PCA", "preimages", _inverted(mercer.PCA(5, kernel=kernel))
    yield "PCA", "learned preimages", _inverted(mercer.PCA(5, kernel=kernel, preimage="learned"))
    yield "ProbabilisticPCA", "closed", _alone(mercer.ProbabilisticPCA(2))
    yield "ProbabilisticPCA", "em", _alone(mercer.ProbabilisticPCA(2, method="em"))
    yield "ICA", "", _alone(mercer.ICA(3))
    yield "ProjectionPursuit", "", _alone(mercer.ProjectionPursuit(2))
    yield "Whiten", "", _alone(mercer.Whiten())
    for form, options in {"": {}, "rank": {"rank": 50}, "penalty 0.1": {"penalty": 0.1}}.items():
        machine = mercer.CCA(kernel_x=kernel, kernel_y=kernel, **options)
        yield "CCA", form, lambda data, m=machine: m.fit(data.X[:, :3], data.X[:, 3:])


def _inverted(machine: Any) -> Callable[[Data], Any]:
    def fit(data: Data) -> Any:
        machine.fit(data.X)
        machine.inverse_transform(machine.transform(data.X[:500]))
        return machine

    return fit


def _groups() -> Iterator[tuple[str, str, Callable[[Data], Any]]]:
    kernel = Gaussian(1.0)
    yield "KMeans", "", _alone(mercer.KMeans(3, kernel, n_init=2, random_state=0))
    yield "KMeans", "linear", _alone(mercer.KMeans(3, n_init=2, random_state=0))
    common: dict[str, Any] = {"n_init": 2, "random_state": 0}
    for form, options in {
        "": {},
        "ratio": {"normalization": "ratio"},
        "neighbours": {"neighbors": 10},
        "sign": {"n_clusters": 2, "assign": "sign"},
        "doubly stochastic": {"normalization": "doubly_stochastic", "time_limit": 10.0},
        "plain": {"normalization": "plain"},
        "eigengap": {"n_clusters": "eigengap"},
    }.items():
        machine = mercer.SpectralClustering(
            **{"n_clusters": 3, "kernel": kernel, **common, **options}
        )
        yield "SpectralClustering", form, _alone(machine)


def _densities() -> Iterator[tuple[str, str, Callable[[Data], Any]]]:
    yield "GaussianMixture", "", _alone(mercer.GaussianMixture(3))
    yield "BernoulliMixture", "", _alone(mercer.BernoulliMixture(3))
    yield "MultinomialMixture", "", _alone(mercer.MultinomialMixture(3), "counts")
    yield "GaussianClassifier", "", _supervised(mercer.GaussianClassifier(), "three")
    yield "NaiveBayes", "", _supervised(mercer.NaiveBayes(), "three")


def _choices() -> Iterator[tuple[str, str, Callable[[Data], Any]]]:
    kernel, grid = Gaussian(1.0), {"C": [0.1, 1.0, 10.0]}
    for form, machine, name, asked in (
        ("SVC", mercer.SVC(kernel), "two", grid),
        ("SVC, squared slack", mercer.SVC(kernel, slack="l2"), "two", grid),
        ("SVR", mercer.SVR(kernel), "target", grid),
        ("SVR, squared tube", mercer.SVR(kernel, tube="l2"), "target", grid),
        ("SVR, nu", mercer.SVR(kernel, nu=0.3), "target", grid),
        ("KernelRidge", mercer.KernelRidge(kernel=kernel), "target", {"penalty": [0.1, 1.0]}),
        (
            "NearestNeighbors",
            mercer.NearestNeighbors(kernel=kernel),
            "three",
            {"n_neighbors": [1, 5]},
        ),
    ):
        yield (
            "tune",
            form,
            lambda data, m=machine, k=name, g=asked: selection.tune(
                m, data.X, getattr(data, k), grid=g, cv=3
            ),
        )
    kernels = [Gaussian(0.5), Gaussian(1.0), Gaussian(2.0)]
    for loss in ("alignment", "margin", "ridge"):
        yield (
            "combine",
            loss,
            lambda data, m=loss: selection.combine(kernels, data.X, data.two, method=m),
        )


def _compat() -> Iterator[tuple[str, str, Callable[[Data], Any]]]:
    yield "compat SVC", "", _supervised(compat.SVC(), "two")
    yield "compat SVC", "probability", _supervised(compat.SVC(probability=True), "two")
    yield "compat NuSVC", "", _supervised(compat.NuSVC(nu=0.2), "two")
    yield "compat NuSVR", "", _supervised(compat.NuSVR(nu=0.3), "target")
    yield "compat SVR", "", _supervised(compat.SVR(), "target")
    yield "compat KernelPCA", "", _alone(compat.KernelPCA(5, kernel="rbf"))
    yield (
        "compat KernelPCA",
        "inverse",
        _alone(compat.KernelPCA(5, kernel="rbf", fit_inverse_transform=True)),
    )
    yield "compat SpectralClustering", "", _alone(compat.SpectralClustering(3, n_init=2))


def measure(
    n: int, budget: int, wanted: Callable[[str, str], bool] = lambda machine, form: True
) -> list[Peak]:
    """Fit each machine in a fork of a process that only holds data and the library.

    The caller must not have fitted anything large itself: its pages would be used again.
    """
    data, small = Data.of(n), Data.of(_WARM)
    return [
        _forked(machine, form, fit, data, small, budget)
        for machine, form, fit in cases()
        if wanted(machine, form)
    ]


def _forked(
    machine: str, form: str, fit: Callable[[Data], Any], data: Data, small: Data, budget: int
) -> Peak:
    context = multiprocessing.get_context("fork")
    reader, writer = context.Pipe(duplex=False)

    def child() -> None:
        warnings.simplefilter("ignore")
        writer.send(_measured(machine, form, fit, data, small, budget))

    process = context.Process(target=child)
    process.start()
    writer.close()
    try:
        return reader.recv()
    except EOFError:
        return Peak(machine, form, -1, "the process died", 0.0)
    finally:
        process.join()


def _measured(
    machine: str, form: str, fit: Callable[[Data], Any], data: Data, small: Data, budget: int
) -> Peak:
    _warm(fit, small)
    with mercer.config(memory=_LITTLE):  # the code of landmarks, and of matrices not stored
        _warm(fit, small)
    _warm_blas()
    _read_mapped_files()
    with mercer.config(memory=budget):
        start = time.monotonic()
        grown, fitted, ending = _growth(lambda: fit(data))
        seconds = time.monotonic() - start
        if fitted is None:
            return Peak(machine, form, grown, ending, seconds)
        certificate, _, _ = _growth(lambda: getattr(fitted, "certificate_", None))
        predicted, _, failed = _growth(lambda: _use(fitted, data))
        pickled, _, _ = _growth(lambda: pickle.loads(pickle.dumps(fitted)))
    ending = _ending(fitted) + (f"; predict: {failed}" if failed else "")
    return Peak(machine, form, grown, ending, seconds, certificate, predicted, pickled)


def _warm(fit: Callable[[Data], Any], small: Data) -> None:
    """Do everything that is measured once, on few rows."""
    _, fitted = _tried(lambda: fit(small))
    _tried(lambda: getattr(fitted, "certificate_", None))
    _tried(lambda: _use(fitted, small))
    _tried(lambda: pickle.loads(pickle.dumps(fitted)))


def _read_mapped_files() -> None:
    """Read every page of the files that this process has mapped, its libraries."""
    libc = ctypes.CDLL(None)
    with open("/proc/self/maps") as lines:
        for line in lines:
            addresses, access, _, _, _, *name = line.split()
            if access.startswith("r") and name and name[0].startswith("/"):
                start, end = (int(word, 16) for word in addresses.split("-"))
                libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _POPULATE_READ)


def _warm_blas() -> None:
    """Let BLAS and LAPACK take the buffers that they keep for the life of a process.

    They grow with the first products of a size, and are no memory of a fit.
    """
    tall = np.random.default_rng(0).standard_normal((2 * 10**3, 300))
    small = tall.T @ tall
    np.linalg.qr(tall)
    np.linalg.eigh(small)
    scipy.linalg.cho_factor(small)
    tall @ small


def _use(fitted: Any, data: Data) -> Any:
    for name in ("predict", "transform"):
        if hasattr(fitted, name):
            X = data.counts if isinstance(fitted, mercer.MultinomialMixture) else data.X
            return getattr(fitted, name)(X[:, : fitted.n_features_in_])
    return None


def _ending(fitted: Any) -> str:
    solution = getattr(fitted, "solution_", None)
    return "fitted" if solution is None else f"{solution.solver}, {solution.status.name.lower()}"


def _tried(work: Callable[[], Any]) -> tuple[str, Any]:
    try:
        return "", work()
    except Exception as error:  # whatever it is, it belongs into the table
        return f"{type(error).__name__}: {error}", None


def _growth(work: Callable[[], Any]) -> tuple[int, Any, str]:
    """Return by how much a call raised the peak above what the process holds before it."""
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")  # the peak is what is held now
    before = _status("VmRSS")
    failed, result = _tried(work)
    return _status("VmHWM") - before, result, failed


def _status(name: str) -> int:
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))


def as_table(peaks: list[Peak], n: int, budget: int) -> str:
    """Write the table of the documentation."""
    allowed = budget + allowance(n)
    lines = ["| machine | form | peak | ending |", "| --- | --- | --- | --- |"]
    for peak in peaks:
        kept = "" if peak.most <= allowed else " **over**"
        ending = peak.ending.split(". ")[0]
        lines.append(
            f"| {peak.machine} | {peak.form} | {format_bytes(peak.most)}{kept} | {ending} |"
        )
    return "\n".join(lines)


def main(n: int = 16_000, budget: int = 120 * MB) -> str:
    """Measure all machines, and write the table."""
    table = as_table(measure(n, budget), n, budget)
    print(table, flush=True)
    return table


if __name__ == "__main__":
    rows, room = [int(word) for word in sys.argv[1:3]] or (16_000, 120)
    main(rows, room * MB)
