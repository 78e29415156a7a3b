"""Machines fitted on the host and on the card: both certified, one ending, the same answers.

Every machine that asks a kernel for its matrix, its products or its features, in each of its forms,
and the searches over them. Rows are as many as the descents on the card want, and wide enough to be
sent there; the last fit of each gets them as tensors.
"""

import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

import mercer
from benchmarks.card.setting import SMALL, WHERE, say
from mercer import selection
from mercer.approximation import Nystrom, RandomFeatures
from mercer.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial
from mercer.solvers import ConjugateGradient, SketchAndProject

WORKERS = 10
_N, _D, _OTHERS = (240, 20, 100) if SMALL else (2400, 120, 400)
_VIOLATION = 2e-2  # of values: what a violation of 1e-3 of the margin's size leaves open
_SMOOTH = 1e-4  # answers that Newton steps or float32 passes come near
_EXACT = 1e-6  # answers of one system of equations
_ROUGH = 0.1  # searches by gradients, whose stops differ by rounding


class Case(NamedTuple):
    """A machine, what it is fitted to, and how far two of its answers may be apart."""

    machine: Callable[[], Any]
    target: str | None
    verb: str
    apart: float
    certified: bool = True


def _rows() -> tuple[Any, Any, dict[str | None, Any]]:
    """Return rows in five clear groups, others like them, and targets of all kinds."""
    rng = np.random.default_rng(0)
    means = 3.0 * rng.standard_normal((5, _D)) / np.sqrt(_D) * 3.0
    group = rng.integers(0, 5, _N + _OTHERS)
    X = means[group] + rng.standard_normal((_N + _OTHERS, _D)) / np.sqrt(_D) * 3.0
    wave = np.sin(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(len(X))
    some = rng.random(_N) < 0.2
    targets = {
        None: None,
        "group": group[:_N],
        "two": np.where(wave[:_N] > 0, 1, -1),
        "wave": wave[:_N],
        "waves": np.column_stack([wave[:_N], X[:_N, 1] ** 2]),
        "gaps": np.where(some, group[:_N], -1),
        "missing": np.where(some, wave[:_N], np.nan),
        "gaps of two": np.where(some, wave[:_N] > 0, -1),
        "view": np.column_stack([wave[:_N], X[:_N, :3] ** 2]),
    }
    return X[:_N], X[_N:], targets


class _Scales:
    """A scale for each of three columns, learnt by gradients."""

    def fit(self, X: Any, y: Any) -> Any:
        return selection.learn_scales(X[:500, :3], y[:500], starts=1, max_iter=20)


class _Compressed:
    """A support vector machine, and then fewer vectors.

    Which of many that are as good are taken is decided by rounding, so that what they leave out is
    compared, not their values.
    """

    def fit(self, X: Any, y: Any) -> Any:
        self.machine = mercer.compress(mercer.SVC(NEAR, 2.0).fit(X, y), n_vectors=40)
        self.solution_, self.certificate_ = self.machine.solution_, self.machine.certificate_
        return self

    @property
    def left_out(self) -> Any:
        """The share of the norm that is left out."""
        return np.array([self.certificate_.quantities.relative_error])


NEAR, LANDMARKS, WAVES = Gaussian(3.0), Nystrom(60), RandomFeatures(60)
SVM = {
    "SVC": Case(lambda: mercer.SVC(NEAR, 2.0), "two", "decision_function", _VIOLATION),
    "SVC, pairs": Case(lambda: mercer.SVC(NEAR, 2.0), "group", "decision_function", _VIOLATION),
    "SVC, one against rest": Case(
        lambda: mercer.SVC(NEAR, 2.0, multiclass="ovr"), "group", "decision_function", _VIOLATION
    ),
    "SVC, squared slack": Case(
        lambda: mercer.SVC(NEAR, 2.0, slack="l2"), "two", "decision_function", _VIOLATION
    ),
    "SVC, nu": Case(lambda: mercer.SVC(NEAR, nu=0.3), "two", "decision_function", _VIOLATION),
    "SVC, gap": Case(
        lambda: mercer.SVC(NEAR, 2.0, criterion="gap", tol=1e-4),
        "two",
        "decision_function",
        _VIOLATION,
    ),
    "SVC, weighted classes": Case(
        lambda: mercer.SVC(Laplacian(5.0), 2.0, class_weight="balanced"),
        "two",
        "decision_function",
        _VIOLATION,
    ),
    "SVC, probabilities": Case(
        lambda: mercer.SVC(NEAR, 2.0, probability=True), "two", "predict_proba", _VIOLATION
    ),
    "SVC, linear": Case(lambda: mercer.SVC(Linear()), "two", "decision_function", _VIOLATION),
    "SVC, landmarks": Case(
        lambda: mercer.SVC(NEAR, 2.0, approximation=LANDMARKS),
        "two",
        "decision_function",
        _VIOLATION,
    ),
    "SVC, frequencies": Case(
        lambda: mercer.SVC(NEAR, 2.0, approximation=WAVES), "group", "decision_function", _VIOLATION
    ),
    "SVR": Case(lambda: mercer.SVR(NEAR, 2.0), "wave", "predict", _VIOLATION),
    "SVR, squared": Case(lambda: mercer.SVR(NEAR, 2.0, tube="l2"), "wave", "predict", _VIOLATION),
    "SVR, nu": Case(lambda: mercer.SVR(NEAR, 2.0, nu=0.4), "wave", "predict", _VIOLATION),
    "SVR, landmarks": Case(
        lambda: mercer.SVR(NEAR, 2.0, approximation=LANDMARKS), "wave", "predict", _VIOLATION
    ),
    "OneClassSVM": Case(
        lambda: mercer.OneClassSVM(NEAR, 0.2), None, "decision_function", _VIOLATION
    ),
    "OneClassSVM, landmarks": Case(
        lambda: mercer.OneClassSVM(NEAR, 0.2, approximation=LANDMARKS),
        None,
        "decision_function",
        _VIOLATION,
    ),
    "EnclosingBall": Case(
        lambda: mercer.EnclosingBall(NEAR, 0.1), None, "decision_function", _VIOLATION
    ),
    "EnclosingBall, hard": Case(
        lambda: mercer.EnclosingBall(NEAR), None, "decision_function", _VIOLATION
    ),
    "LaplacianSVC": Case(
        lambda: mercer.LaplacianSVC(NEAR), "gaps of two", "decision_function", _VIOLATION
    ),
}
RISKS = {
    "KernelRidge": Case(lambda: mercer.KernelRidge(0.1, NEAR), "wave", "predict", _EXACT),
    "KernelRidge, targets": Case(
        lambda: mercer.KernelRidge(0.1, Matern(1.5, 4.0)), "waves", "predict", _EXACT
    ),
    "KernelRidge, path": Case(
        lambda: mercer.KernelRidge("loo", NEAR, penalties=np.geomspace(1e-3, 10.0, 8)),
        "wave",
        "predict",
        _EXACT,
    ),
    "KernelRidge, composed": Case(
        lambda: mercer.KernelRidge(0.1, 0.5 * NEAR + Polynomial(2) * Laplacian(9.0)),
        "wave",
        "predict",
        _EXACT,
    ),
    "KernelRidge, linear": Case(lambda: mercer.KernelRidge(0.1), "wave", "predict", _EXACT),
    "KernelRidge, landmarks": Case(
        lambda: mercer.KernelRidge(0.1, NEAR, approximation=LANDMARKS), "wave", "predict", _SMOOTH
    ),
    "KernelRidge, frequencies": Case(
        lambda: mercer.KernelRidge(0.1, NEAR, approximation=WAVES), "wave", "predict", _SMOOTH
    ),
    "KernelRidge, conjugate gradients": Case(
        lambda: mercer.KernelRidge(0.1, NEAR, solver=ConjugateGradient()), "wave", "predict", _ROUGH
    ),
    "KernelRidge, blocks": Case(
        lambda: mercer.KernelRidge(0.1, NEAR, solver=SketchAndProject()), "wave", "predict", _ROUGH
    ),
    "LaplacianRidge": Case(lambda: mercer.LaplacianRidge(0.1, NEAR), "missing", "predict", _SMOOTH),
    "LogisticRegression": Case(
        lambda: mercer.LogisticRegression(NEAR, 0.1), "two", "decision_function", _SMOOTH
    ),
    "LogisticRegression, classes": Case(
        lambda: mercer.LogisticRegression(NEAR, 0.1), "group", "predict_proba", _SMOOTH
    ),
    "LogisticRegression, linear": Case(
        lambda: mercer.LogisticRegression(penalty=0.1), "two", "decision_function", _SMOOTH
    ),
    "LogisticRegression, landmarks": Case(
        lambda: mercer.LogisticRegression(NEAR, 0.1, approximation=LANDMARKS),
        "two",
        "decision_function",
        _SMOOTH,
    ),
    "LogisticRegression, classes, frequencies": Case(
        lambda: mercer.LogisticRegression(NEAR, 0.1, approximation=WAVES),
        "group",
        "predict_proba",
        _SMOOTH,
    ),
    "GaussianProcess": Case(
        lambda: mercer.GaussianProcess(NEAR, noise=0.1), "wave", "predict", _EXACT
    ),
    "GaussianProcess, learnt": Case(
        lambda: mercer.GaussianProcess(NEAR, noise=0.1, optimize=True, max_iter=15),
        "wave",
        "predict",
        _ROUGH,
        certified=False,
    ),
    "GaussianProcess, landmarks": Case(
        lambda: mercer.GaussianProcess(NEAR, noise=0.1, approximation=LANDMARKS),
        "wave",
        "predict",
        _SMOOTH,
    ),
    "GaussianProcessClassifier": Case(
        lambda: mercer.GaussianProcessClassifier(NEAR), "two", "predict_proba", _SMOOTH
    ),
    "MultiTaskGaussianProcess": Case(
        lambda: mercer.MultiTaskGaussianProcess(
            NEAR, task_covariance=[[1.0, 0.5], [0.5, 1.0]], noise=0.1
        ),
        "waves",
        "predict",
        _SMOOTH,
    ),
    "Perceptron": Case(lambda: mercer.Perceptron(NEAR), "group", "predict", 0.0),
}
FORMS = {
    "PCA": Case(lambda: mercer.PCA(4, NEAR), None, "transform", _SMOOTH),
    "PCA, linear": Case(lambda: mercer.PCA(4), None, "transform", _SMOOTH),
    "PCA, landmarks": Case(
        lambda: mercer.PCA(4, NEAR, approximation=LANDMARKS), None, "transform", _SMOOTH
    ),
    "CCA": Case(lambda: mercer.CCA(2, NEAR, penalty=0.1), "view", "transform", _SMOOTH),
    "CCA, landmarks": Case(
        lambda: mercer.CCA(2, NEAR, penalty=0.1, approximation=LANDMARKS),
        "view",
        "transform",
        _SMOOTH,
    ),
    "FisherDiscriminant": Case(
        lambda: mercer.FisherDiscriminant(NEAR), "group", "transform", _SMOOTH
    ),
    "FisherDiscriminant, landmarks": Case(
        lambda: mercer.FisherDiscriminant(NEAR, approximation=LANDMARKS),
        "group",
        "transform",
        _SMOOTH,
    ),
    "KMeans": Case(lambda: mercer.KMeans(5, NEAR, n_init=3), None, "predict", 0.0),
    "KMeans, linear": Case(lambda: mercer.KMeans(5, n_init=3), None, "predict", 0.0),
    "KMeans, balanced": Case(
        lambda: mercer.KMeans(5, n_init=2, balanced=True), None, "labels_", 0.0
    ),
    "KMeans, landmarks": Case(
        lambda: mercer.KMeans(5, NEAR, n_init=3, approximation=LANDMARKS), None, "predict", 0.0
    ),
    "SpectralClustering": Case(lambda: mercer.SpectralClustering(5, NEAR), None, "labels_", 0.0),
    "SpectralClustering, neighbours": Case(
        lambda: mercer.SpectralClustering(5, NEAR, neighbors=10, assign="kmeans"),
        None,
        "labels_",
        0.0,
    ),
    "NearestMean": Case(lambda: mercer.NearestMean(NEAR), "group", "decision_function", _EXACT),
    "NearestNeighbors": Case(lambda: mercer.NearestNeighbors(5), "group", "predict_proba", _EXACT),
    "NearestNeighbors, Laplacian": Case(
        lambda: mercer.NearestNeighbors(7, Laplacian(4.0)), "group", "predict_proba", _EXACT
    ),
    "LabelPropagation": Case(
        lambda: mercer.LabelPropagation(NEAR), "gaps", "predict_proba", _SMOOTH
    ),
    "LabelSpreading": Case(lambda: mercer.LabelSpreading(NEAR), "gaps", "predict_proba", _SMOOTH),
    "HarmonicRegressor": Case(
        lambda: mercer.HarmonicRegressor(NEAR), "missing", "predict", _SMOOTH
    ),
    "GaussianClassifier": Case(mercer.GaussianClassifier, "group", "decision_function", _SMOOTH),
    "GaussianMixture": Case(lambda: mercer.GaussianMixture(5), None, "score_samples", _SMOOTH),
    "ProbabilisticPCA": Case(
        lambda: mercer.ProbabilisticPCA(3), None, "score_samples", _SMOOTH, certified=False
    ),
    "ICA": Case(lambda: mercer.ICA(3), None, "transform", _SMOOTH),
    "Whiten": Case(mercer.Whiten, None, "transform", _SMOOTH, certified=False),
    "MDS": Case(lambda: mercer.MDS(2), None, "embedding_", _SMOOTH, certified=False),
    "MultipleKernel": Case(
        lambda: selection.MultipleKernel(mercer.KernelRidge(0.1), [NEAR, Laplacian(8.0), Linear()]),
        "wave",
        "predict",
        _SMOOTH,
        certified=False,
    ),
    "learn_scales": Case(_Scales, "wave", "scales", _ROUGH, certified=False),
    "compress": Case(_Compressed, "two", "left_out", _ROUGH),
    "tune": Case(
        lambda: selection.Tuned(
            mercer.SVC(NEAR), {"C": [0.5, 5.0], "kernel__scale": [2.0, 4.0]}, cv=3
        ),
        "two",
        "decision_function",
        _VIOLATION,
        certified=False,
    ),
    "tune, landmarks": Case(
        lambda: selection.Tuned(
            mercer.SVC(NEAR, approximation=LANDMARKS),
            {"C": [0.5, 5.0], "kernel__scale": [2.0, 4.0]},
            cv=3,
        ),
        "two",
        "decision_function",
        _VIOLATION,
        certified=False,
    ),
}
FIRST = ("KernelRidge, blocks", "PCA", "KernelRidge, conjugate gradients")  # take longest
CASES = {name: (SVM | RISKS | FORMS)[name] for name in FIRST} | SVM | RISKS | FORMS


def agree(number: int) -> None:
    """Fit every tenth machine here and there; say whether both agree, and how far apart."""
    X, others, targets = _rows()
    for name in list(CASES)[number::WORKERS]:
        case, begin = CASES[name], time.perf_counter()
        finding: dict[str, Any] = {"machine": name, "agrees": False}
        try:
            wanted, ending = _answer(case, X, targets[case.target], others)
            with mercer.config(backend="torch", device=WHERE):
                found = _answer(case, X, targets[case.target], others)
            on_card = [None if a is None else torch.from_numpy(a).to(WHERE) for a in (X, others)]
            again = _answer(case, on_card[0], targets[case.target], on_card[1])
            apart = [_apart(wanted, answer) for answer, _ in (found, again)]
            endings = [ending, found[1], again[1]]
            same = max(apart) <= case.apart and len(set(endings)) == 1
            finding |= {"agrees": same, "apart": [f"{a:.1e}" for a in apart], "ending": endings}
        except Exception as error:
            last = traceback.format_exc(limit=-4).splitlines()[-10:]
            finding |= {"failed": repr(error)[:300], "where": last}
        say(**finding, seconds=round(time.perf_counter() - begin, 2))


def _answer(case: Case, X: Any, target: Any, others: Any) -> tuple[Any, str]:
    """Return what a fitted machine says of other rows, or of its own, and how its fit ended."""
    machine = case.machine().fit(X, *(() if target is None else (target,)))
    verb = getattr(machine, case.verb)
    found = verb(others) if callable(verb) else verb
    ending = machine.solution_.status.name if hasattr(machine, "solution_") else "fitted"
    if case.certified:
        ending += ", certified" if machine.certificate_.ok else ", not certified"
    return found, ending


def _apart(wanted: Any, found: Any) -> float:
    """Return the largest difference, of the largest value; of labels the share that differ."""
    wanted, found = (np.asarray(torch.as_tensor(a).cpu()) for a in (wanted, found))
    if wanted.dtype.kind in "iub":
        return float(np.mean(wanted != found))
    wanted, found = np.abs(wanted), np.abs(found)  # signs of components are anyone's
    return float(np.abs(wanted - found).max() / max(wanted.max(), 1e-300))
