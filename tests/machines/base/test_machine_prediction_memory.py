"""New rows are answered within the memory budget, however many features stand for a kernel."""

import gc
import inspect
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

import mercer
from mercer import (
    CCA,
    PCA,
    SVC,
    SVR,
    EnclosingBall,
    FisherDiscriminant,
    GaussianProcess,
    GaussianProcessClassifier,
    KernelRidge,
    KMeans,
    LogisticRegression,
    MultiTaskGaussianProcess,
    NearestMean,
    NearestNeighbors,
    OneClassSVM,
    Perceptron,
    SpectralClustering,
)
from mercer.approximation import Nystrom, RandomFeatures
from mercer.kernels import Matern

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.sin(X[:, 0]) + X[:, 1]
SEVERAL = np.column_stack([y, y**2])
labels = np.digitize(y, [-0.5, 0.5])
NEW = rng.normal(size=(5000, 4))
BUDGET, WIDTH = 4_000_000, 160
WHOLE = 8 * len(NEW) * WIDTH  # bytes of the features of all new rows

MACHINES = {
    "SVC": (SVC(), labels),
    "SVR": (SVR(), y),
    "OneClassSVM": (OneClassSVM(nu=0.3), None),
    "EnclosingBall": (EnclosingBall(), None),
    "GaussianProcess": (GaussianProcess(noise=0.1), y),
    "GaussianProcessClassifier": (GaussianProcessClassifier(), labels > 0),
    "MultiTaskGaussianProcess": (MultiTaskGaussianProcess(noise=0.1), SEVERAL),
    "PCA": (PCA(3), None),
    "KMeans": (KMeans(3, random_state=0), None),
    "SpectralClustering": (SpectralClustering(2, tol=1e-3), None),
    "CCA": (CCA(2), SEVERAL),
    "Perceptron": (Perceptron(), labels),
    "LogisticRegression": (LogisticRegression(penalty=0.1), labels),
    "KernelRidge": (KernelRidge(0.1), y),
    "FisherDiscriminant": (FisherDiscriminant(penalty=0.1), labels),
    "NearestMean": (NearestMean(), labels),
    "NearestNeighbors": (NearestNeighbors(3), labels),
}
ASKED = ("predict", "decision_function", "predict_proba", "transform", "score_samples")
SPREAD = ("GaussianProcess", "MultiTaskGaussianProcess")


def fitted(name, how, rows=X):
    machine, targets = MACHINES[name]
    kernel = "kernel_x" if name == "CCA" else "kernel"
    given = {kernel: Matern(0.5, 3.0), "approximation": how}
    return clone(machine).set_params(**given).fit(rows, targets)


def questions(name, machine):
    found = {method: getattr(machine, method) for method in ASKED if hasattr(machine, method)}
    if name in SPREAD:
        found["return_std"] = lambda rows: np.concatenate(
            [np.ravel(part) for part in machine.predict(rows, return_std=True)]
        )
    return found


def test_every_machine_with_features_is_asked():
    offered = {
        name
        for name in mercer.__all__
        if hasattr(getattr(mercer, name), "fit")
        and "approximation" in inspect.signature(getattr(mercer, name)).parameters
    }
    assert offered == set(MACHINES)


@pytest.mark.sampled(20)
@pytest.mark.parametrize("how", [Nystrom(WIDTH), RandomFeatures(WIDTH)], ids=["landmarks", "waves"])
@pytest.mark.parametrize("name", MACHINES)
def test_features_of_new_rows_are_never_all_written(name, how):
    assert WHOLE > 1.5 * BUDGET
    machine = fitted(name, how)
    for method, ask in questions(name, machine).items():
        ask(NEW[:50])  # modules and caches
        expected = ask(NEW)
        gc.collect()
        with mercer.config(memory=BUDGET):
            tracemalloc.start()
            try:
                found = ask(NEW)
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
        assert peak < BUDGET, f"{method}: {peak} bytes"
        if expected.dtype.kind == "f":
            size = np.abs(expected).max()
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12 * size)
        else:
            assert (found == expected).mean() > 0.999  # ties that rounding decides
