"""SOLVED implies a certificate that agrees: random machines, parameters and hostile scalings.

More by hand: `python tests/reliability/test_solved_is_certified.py FIRST COUNT`.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import has_fit_parameter

from mercer import (
    CCA,
    ICA,
    MDS,
    PCA,
    SVC,
    SVR,
    BernoulliMixture,
    EnclosingBall,
    FisherDiscriminant,
    GaussianClassifier,
    GaussianMixture,
    GaussianProcess,
    GaussianProcessClassifier,
    HarmonicRegressor,
    KernelRidge,
    KMeans,
    LabelPropagation,
    LabelSpreading,
    LaplacianRidge,
    LaplacianSVC,
    LogisticRegression,
    MultinomialMixture,
    MultiTaskGaussianProcess,
    NaiveBayes,
    NearestMean,
    NearestNeighbors,
    OneClassSVM,
    Perceptron,
    ProbabilisticPCA,
    ProjectionPursuit,
    SpectralClustering,
    Whiten,
)
from mercer.approximation import Approximation, Nystrom, RandomFeatures
from mercer.approximation.nystrom import RULES
from mercer.approximation.random_features import KINDS
from mercer.certificates import Certificate
from mercer.compat import sklearn as compat
from mercer.kernels import (
    Anova,
    ChiSquared,
    Constant,
    Cosine,
    Gaussian,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Tanimoto,
)
from mercer.solvers import GradientDescent, SolverError, Status

pytestmark = pytest.mark.numerics

Random = np.random.Generator

_SEEDS, _EACH = 200, 25  # fits in the suite, and in one test: a few seconds
_REFUSALS = (ValueError, SolverError, MemoryError)
_SECONDS = 5.0  # of one fit: a limit is an honest ending, and keeps a long run moving


class Case(NamedTuple):
    """A machine, what it is fitted to, and what was done to that."""

    machine: Any
    X: np.ndarray
    y: np.ndarray | None
    weights: np.ndarray | None
    hostile: str


class Outcome(NamedTuple):
    """How a fit ended: the status before the certificate was read, and the verdict."""

    status: Status | None
    ok: bool
    said: str

    @property
    def broken(self) -> bool:
        """Whether SOLVED was said of an answer that is not certified."""
        return self.status is Status.SOLVED and not self.ok


def _power(random: Random, low: float, high: float) -> float:
    return float(10.0 ** random.uniform(low, high))


def _kernel(random: Random, size: float, positive: bool) -> Kernel:
    """Draw a kernel of any family; scales are about the size of the rows, or far from it."""
    scale = size * _power(random, -2, 2)
    drawn: list[Callable[[], Kernel]] = [
        Linear,
        lambda: Gaussian(scale),
        lambda: Gaussian(scale),
        lambda: Laplacian(scale),
        lambda: Matern(float(random.choice([0.5, 1.5, 2.5])), scale),
        lambda: RationalQuadratic(scale, _power(random, -1, 1)),
        lambda: Polynomial(int(random.integers(1, 4)), offset=_power(random, -2, 2)),
        Cosine,
        lambda: Linear() + 0.5 * Gaussian(scale),
        lambda: Gaussian(scale) + Constant(_power(random, -3, 3)),
        lambda: Linear() * Gaussian(scale),
        lambda: Anova(1),
    ]
    if positive:
        drawn += [lambda: ChiSquared(1.0 / scale), Intersection, Tanimoto]
    return drawn[int(random.integers(len(drawn)))]()


def _rows(random: Random) -> tuple[np.ndarray, str]:
    """Draw rows and do something hostile to them."""
    n = int(random.choice([2, 3, 5, 8, 20, 40, 90]))
    d = int(random.choice([1, 2, 4, 7]))
    X, done = random.normal(size=(n, d)), []
    if random.random() < 0.3:
        X, done = np.abs(X), ["positive"]
    if random.random() < 0.25:
        X, done = X[random.integers(0, max(1, n // 2), n)], [*done, "duplicates"]
    if random.random() < 0.2:
        X[:, random.integers(d)] = random.choice([0.0, 1.0, 1e5])
        done.append("constant column")
    if random.random() < 0.15:
        X, done = np.round(X), [*done, "integers"]
    if random.random() < 0.15:
        X, done = X * 10.0 ** random.uniform(-6, 6, d), [*done, "skewed columns"]
    if random.random() < 0.15:
        X, done = X + _power(random, 2, 8), [*done, "offset"]
    if random.random() < 0.4:
        factor = _power(random, -8, 8)
        X, done = X * factor, [*done, f"times {factor:.0e}"]
    return X, ", ".join(done)


def _labels(random: Random, n: int) -> np.ndarray:
    k = int(random.integers(2, 5))
    y = random.integers(0, k, n)
    y[: min(n, 2)] = [0, 1][: min(n, 2)]
    return np.sort(y) if random.random() < 0.3 else y


def _targets(random: Random, X: np.ndarray) -> np.ndarray:
    n = len(X)
    wave = np.sin(X[:, 0] / max(np.abs(X).max(), 1e-300) * 3) + 0.1 * random.normal(size=n)
    y = wave * (_power(random, -8, 8) if random.random() < 0.3 else 1.0)
    y = y + (_power(random, 0, 8) if random.random() < 0.15 else 0.0)
    return np.full(n, 3.0) if random.random() < 0.05 else y


def _weights(random: Random, n: int) -> np.ndarray | None:
    if random.random() < 0.5:
        return None
    w = 10.0 ** random.uniform(-6, 6, n) if random.random() < 0.6 else random.uniform(0.1, 3, n)
    if random.random() < 0.2 and n > 4:
        w[2:][random.random(n - 2) < 0.3] = 0.0
    return w


def _svc(random: Random, kernel: Kernel) -> Any:
    if random.random() < 0.15:
        return SVC(kernel, nu=float(random.uniform(0.05, 0.5)), time_limit=_SECONDS)
    return SVC(
        kernel,
        C=_power(random, -6, 12) if random.random() < 0.5 else _power(random, -1, 2),
        slack=str(random.choice(["l1", "l2"])),
        multiclass=str(random.choice(["ovo", "ovr"])),
        criterion=str(random.choice(["violation", "violation", "gap"])),
        tol=float(random.choice([1e-3, 1e-3, 1e-5, 1e-1])),
        time_limit=_SECONDS,
    )


def _svr(random: Random, kernel: Kernel) -> Any:
    C = _power(random, -6, 12) if random.random() < 0.5 else _power(random, -1, 2)
    if random.random() < 0.2:
        return SVR(kernel, C, nu=float(random.uniform(0.05, 0.9)), time_limit=_SECONDS)
    epsilon, tube = _power(random, -4, 0), str(random.choice(["l1", "l2"]))
    criterion = str(random.choice(["violation", "gap"]))
    return SVR(kernel, C, epsilon, tube=tube, criterion=criterion, time_limit=_SECONDS)


def _ridge(random: Random, kernel: Kernel) -> Any:
    penalty: Any = "loo" if random.random() < 0.25 else _power(random, -12, 12)
    return KernelRidge(penalty, kernel=kernel, bias=bool(random.random() < 0.7))


def _process(random: Random, kernel: Kernel) -> Any:
    return GaussianProcess(
        kernel,
        noise=_power(random, -12, 12),
        bias=bool(random.random() < 0.5),
        optimize=bool(random.random() < 0.5) and ["noise"],
        max_iter=20,
        time_limit=_SECONDS,
    )


def _logistic(random: Random, kernel: Kernel) -> Any:
    return LogisticRegression(
        kernel,
        _power(random, -12, 12) if random.random() < 0.5 else _power(random, -2, 2),
        loss=str(random.choice(["log", "log", "squared", "tanh"])),
        bias=bool(random.random() < 0.7),
        time_limit=_SECONDS,
    )


def _cca(random: Random, kernel: Kernel) -> Any:
    penalty: Any = "auto" if random.random() < 0.3 else _power(random, -6, 0)
    return CCA(
        kernel_x=kernel, kernel_y="linear", n_components=int(random.integers(1, 3)), penalty=penalty
    )


def _mixture(random: Random, kernel: Kernel) -> Any:
    covariance = str(random.choice(["full", "diagonal", "spherical"]))
    k = int(random.integers(1, 4))
    return GaussianMixture(k, covariance=covariance, n_init=1, time_limit=_SECONDS)


def _spectral(random: Random, kernel: Kernel) -> Any:
    return SpectralClustering(int(random.integers(2, 4)), kernel, n_init=2, random_state=0)


def _pca(random: Random, kernel: Kernel) -> Any:
    count: Any = [1, 2, 5, None, 0.9][int(random.integers(5))]
    return PCA(count, kernel=kernel)


Draw = Callable[[Random, Kernel], Any]

_ROWS_ALONE: list[Draw] = [
    _pca,
    _pca,
    lambda r, k: OneClassSVM(k, float(r.uniform(0.02, 1.0)), time_limit=_SECONDS),
    lambda r, k: EnclosingBall(k, float(r.choice([0.0, 0.1, 0.5])), time_limit=_SECONDS),
    lambda r, k: KMeans(int(r.integers(1, 4)), k, n_init=2, random_state=0, time_limit=_SECONDS),
    _spectral,
    _mixture,
    lambda r, k: PCA(2, kernel=k, center=False),
    lambda r, k: KMeans(2, k, balanced=True, n_init=1),
    lambda r, k: BernoulliMixture(int(r.integers(1, 4)), n_init=1, time_limit=_SECONDS),
    lambda r, k: BernoulliMixture(2, tied=True, n_init=1, time_limit=_SECONDS),
    lambda r, k: MultinomialMixture(int(r.integers(1, 4)), max_iter=50, time_limit=_SECONDS),
    lambda r, k: MDS(1),
    lambda r, k: ProbabilisticPCA(1, method=str(r.choice(["closed", "em"])), time_limit=_SECONDS),
    lambda r, k: ICA(
        algorithm=str(r.choice(["parallel", "deflation"])),
        contrast=str(r.choice(["logcosh", "cube", "exp"])),
        n_init=1,
        time_limit=_SECONDS,
    ),
    lambda r, k: ProjectionPursuit(1, n_init=2, time_limit=_SECONDS),
    lambda r, k: Whiten(),
    lambda r, k: compat.KernelPCA(2, kernel="rbf", gamma=_power(r, -4, 4)),
    lambda r, k: compat.OneClassSVM(nu=float(r.uniform(0.05, 0.9))),
]
_CLASSES: list[Draw] = [
    _svc,
    _svc,
    _svc,
    _logistic,
    _logistic,
    lambda r, k: FisherDiscriminant(k, penalty=_power(r, -12, 2)),
    lambda r, k: FisherDiscriminant(k, penalty=_power(r, -12, 2), penalty_on="coefficients"),
    lambda r, k: LogisticRegression(
        k, _power(r, -2, 2), solver=GradientDescent(_power(r, -2, 0), max_iter=200)
    ),
    lambda r, k: GaussianProcessClassifier(_power(r, -6, 6) * k, time_limit=_SECONDS),
    lambda r, k: NearestMean(k),
    lambda r, k: LabelPropagation(k, time_limit=_SECONDS),
    lambda r, k: LabelSpreading(k, alpha=float(r.uniform(0.01, 0.99)), time_limit=_SECONDS),
    lambda r, k: LaplacianSVC(
        k, _power(r, -3, 4), intrinsic_penalty=_power(r, -4, 4), time_limit=_SECONDS
    ),
    lambda r, k: NearestNeighbors(int(r.integers(1, 3)), kernel=k),
    lambda r, k: NearestNeighbors(1, kernel=k, by="similarity", votes="signed"),
    lambda r, k: Perceptron(k, max_epochs=20),
    lambda r, k: GaussianClassifier(str(r.choice(["full", "diagonal", "spherical"]))),
    lambda r, k: NaiveBayes(),
    lambda r, k: compat.SVC(C=_power(r, -6, 8), kernel=str(r.choice(["rbf", "linear"]))),
    lambda r, k: compat.LinearSVC(C=_power(r, -6, 8)),
    lambda r, k: compat.LinearDiscriminantAnalysis(),
]
_REGRESSION: list[Draw] = [
    _ridge,
    _ridge,
    _process,
    lambda r, k: MultiTaskGaussianProcess(k, noise=_power(r, -6, 6), time_limit=_SECONDS),
    _svr,
    _svr,
    _cca,
    lambda r, k: HarmonicRegressor(k, time_limit=_SECONDS),
    lambda r, k: LaplacianRidge(_power(r, -4, 2), k, time_limit=_SECONDS),
    lambda r, k: compat.SVR(C=_power(r, -6, 8), epsilon=_power(r, -4, 0)),
    lambda r, k: compat.LinearSVR(C=_power(r, -6, 8), epsilon=_power(r, -4, 0)),
]
_FAMILIES = (_ROWS_ALONE, _CLASSES, _CLASSES, _REGRESSION, _REGRESSION)


def _approximation(random: Random) -> Approximation:
    """Draw features to stand for a kernel: very few, or more than there are rows."""
    count = int(random.choice([2, 3, 5, 10, 200]))
    if random.random() < 0.3:
        return RandomFeatures(count, str(random.choice(KINDS)))
    return Nystrom(count, str(random.choice(list(RULES))))


def with_features(seed: int) -> Case:
    """Draw a case of a machine that may have features in place of its kernel, and give it some."""
    random = np.random.default_rng([seed, 1])
    while True:
        drawn = case(int(random.integers(2**31)))
        if "approximation" in drawn.machine.get_params(deep=False):
            drawn.machine.set_params(approximation=_approximation(random))
            return drawn


def case(seed: int) -> Case:
    """Draw a case."""
    random = np.random.default_rng(seed)
    X, done = _rows(random)
    size = float(np.abs(X - X.mean(axis=0)).max()) or 1.0
    positive = bool((X >= 0).all())
    kernel = _kernel(random, size, positive)
    weights = _weights(random, len(X))
    machines = _FAMILIES[int(random.integers(len(_FAMILIES)))]
    machine = machines[int(random.integers(len(machines)))](random, kernel)
    y = None
    if machines is not _ROWS_ALONE:
        y = _labels(random, len(X)) if machines is _CLASSES else _targets(random, X)
    if isinstance(machine, CCA):
        y = np.column_stack([y, random.normal(size=len(X))])
    if isinstance(machine, MultinomialMixture):
        X = np.floor(np.abs(X) / np.abs(X).max(initial=1e-300) * 5)
    return Case(machine, X, y, weights, done)


def outcome(drawn: Case) -> Outcome:
    """Fit, note the status, then read the certificate."""
    machine, X, y, weights, _ = drawn
    takes = has_fit_parameter(machine, "sample_weight") and weights is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            machine.fit(X, y, **({"sample_weight": weights} if takes else {}))
        except _REFUSALS as refused:
            return Outcome(None, False, f"{type(refused).__name__}: {refused}")
        status = machine.solution_.status
        certificate = machine.certificate_
    return Outcome(status, bool(certificate.ok), str(certificate))


def run(first: int, count: int) -> Counter[str]:
    """Fit many cases; print those that break the promise, and those that raise."""
    seen: Counter[str] = Counter()
    for seed in range(first, first + count):
        drawn = with_features(seed) if seed % 4 == 3 else case(seed)
        name = type(drawn.machine).__name__
        try:
            found = outcome(drawn)
        except Exception as error:  # counted, so that a long run goes on
            seen[f"raised {type(error).__name__}"] += 1
            print(f"{seed}: {drawn.machine!r} [{drawn.hostile}]\n{error!r}", flush=True)
            continue
        seen["refused" if found.status is None else found.status.name] += 1
        if found.broken:
            seen[f"BROKEN {name}"] += 1
            print(f"{seed}: {drawn.machine!r} [{drawn.hostile}]\n{found.said}", flush=True)
    return seen


@pytest.mark.parametrize("draw", [case, with_features])
@pytest.mark.parametrize("first", range(0, _SEEDS, _EACH))
def test_solved_implies_certified(first: int, draw: Callable[[int], Case]) -> None:
    drawn = [draw(seed) for seed in range(first, first + _EACH)]
    found = [outcome(one) for one in drawn]
    broken = [
        f"{one.machine!r} [{one.hostile}]\n{end.said}"
        for one, end in zip(drawn, found, strict=True)
        if end.broken
    ]
    assert not broken, "\n".join(broken)
    assert sum(end.status is Status.SOLVED for end in found) > _EACH // 3  # not by refusing


def test_an_answer_that_is_not_certified_is_inaccurate_and_warned_of() -> None:
    """Coefficients of 1e11 are known to 1e-5 in float64: no solver could do better."""
    random = np.random.default_rng(0)
    X = random.uniform(-3, 3, (200, 1))
    y = np.sin(X[:, 0]) + 0.1 * random.normal(size=200)
    with pytest.warns(ConvergenceWarning, match="KernelRidge: stopped making progress"):
        machine = KernelRidge(1e-12, kernel=Gaussian(1.0)).fit(X, y)
    assert machine.solution_.status is Status.INACCURATE
    assert "not certified" in machine.solution_.detail
    assert not machine.certificate_.ok


def test_three_classes_of_huge_rows_are_solved() -> None:
    """Biases are not held back by the size of the features, and the gap decides the end."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(90, 3)), random.integers(0, 3, 90)
    machine = LogisticRegression(Linear()).fit(X * 1e8, y)
    assert machine.solution_.status is Status.SOLVED
    assert machine.certificate_.ok
    free = LogisticRegression(Linear(), 1e-8).fit(X, y)  # what a vanishing penalty tends to
    # not scores: what all have in common is worth 1e-16 of the objective in these units
    np.testing.assert_allclose(machine.predict_proba(X * 1e8), free.predict_proba(X), atol=1e-6)


def test_a_class_process_of_large_variance_that_pulls_little() -> None:
    """Slopes of 1e-5 are known to their own digits, not to those of the weights."""
    found = outcome(case(807765))
    assert found.status is Status.SOLVED
    assert not found.broken


@pytest.mark.parametrize("machine", [GaussianProcess, MultiTaskGaussianProcess])
def test_the_likelihood_of_rows_that_count_for_nothing(machine: Any) -> None:
    """Its error is a number of its own, not a multiple of what the rows weigh."""
    random = np.random.default_rng(5)
    X, weights = random.normal(size=(12, 2)), 1e-300 * random.random(12)
    fitted = machine(Gaussian(0.5)).fit(X, np.sin(X[:, 0]), sample_weight=weights)
    assert fitted.solution_.status is Status.SOLVED
    assert fitted.certificate_.ok


@pytest.mark.parametrize("seed", [71, 282, 392, 640])
def test_squared_slack_of_rows_that_hardly_count(seed: int) -> None:
    """Slack of a weight of 1e-6 is a coefficient below the rounding of sums: it is kept, too."""
    random = np.random.default_rng(seed)
    n, d = int(random.choice([6, 12, 30, 60])), int(random.integers(1, 5))
    X = random.normal(size=(n, d)) * 10 ** random.uniform(-2, 2)
    y = (X[:, 0] + X.std() * random.normal(size=n) > 0).astype(int)
    y[:2] = [0, 1]
    weights = 10 ** random.uniform(-6, 4, n)
    kernels = [Linear(), Gaussian(1.0), Polynomial(2), Gaussian(10 * X.std())]
    kernel, C = kernels[random.integers(4)], 10 ** random.uniform(-3, 4)
    machine: Any = SVC(kernel, C, slack="l2") if seed % 2 else SVR(kernel, C, tube="l2")
    machine.fit(X, y, sample_weight=weights)
    assert machine.solution_.status is Status.SOLVED
    assert machine.certificate_.ok


def _tight(seed: int) -> Case:
    """Draw a support vector fit whose tolerance, or objective, is next to rounding."""
    random = np.random.default_rng(seed)
    n, d = int(random.integers(4, 60)), int(random.integers(1, 8))
    X, kernel = random.normal(size=(n, d)), [Gaussian(2.0), Linear(), Cosine() ** 2][seed % 3]
    tol = 10.0 ** random.uniform(-13, -3)
    if seed % 2:
        nu = float(10.0 ** random.uniform(-3, -0.5))
        return Case(SVC(kernel, nu=nu, tol=tol), X, np.arange(n) % 2, None, "tight")
    y = random.normal() + 10.0 ** random.uniform(-18, 0) * random.normal(size=n) * (seed % 4 > 0)
    criterion = str(random.choice(["gap", "violation"]))
    machine = SVR(kernel, epsilon=0.0, tol=tol, criterion=criterion, max_iter=2000)
    return Case(machine, X, y, None, "tight")


@pytest.mark.parametrize("first", range(0, 100, 50))
def test_support_vectors_next_to_rounding(first: int) -> None:
    """Certificates count the rounding of their sums: a fit that ends near it asks them first."""
    found = {seed: outcome(_tight(seed)) for seed in range(first, first + 50)}
    assert not [f"{seed}: {end.said}" for seed, end in found.items() if end.broken]
    assert sum(end.status is Status.SOLVED for end in found.values()) > 15


def test_targets_that_are_all_alike_are_met_exactly() -> None:
    """An objective of zero leaves a relative gap no size; no rounding must be counted in it."""
    X = np.random.default_rng(0).normal(size=(44, 3))
    for y in (1.0, 0.1, -1e9, 1e-300):
        machine = SVR(Gaussian(1.0), epsilon=0.0, criterion="gap", tol=1e-6).fit(X, np.full(44, y))
        assert machine.solution_.status is Status.SOLVED
        assert machine.certificate_.ok and machine.certificate_.quantities.gap == 0


def test_a_verdict_read_later_takes_solved_back() -> None:
    """The last resort, where nothing gave reason to judge within the fit."""
    random = np.random.default_rng(0)
    machine = NearestMean(Gaussian(1.0)).fit(random.normal(size=(20, 2)), np.arange(20) % 2)
    assert machine.solution_.status is Status.SOLVED
    pending: Any = machine._judgement

    def spoilt(problem: Any, value: Any) -> Certificate:
        return replace(pending.judge(problem, value), ok=False, statement="spoilt")

    machine._judgement = replace(pending, judge=spoilt)
    with pytest.warns(ConvergenceWarning, match="not certified: spoilt"):
        assert not machine.certificate_.ok
    assert machine.solution_.status is Status.INACCURATE


if __name__ == "__main__":
    print(run(int(sys.argv[1]), int(sys.argv[2])))
