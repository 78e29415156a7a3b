"""Programs end: after a time limit, or Ctrl-C, in fits that call LAPACK; no thread is left.

Each case is a program of its own with the threads of BLAS that it has by default.
"""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer.backends import factorizations

SOURCE = str(Path(mercer.__file__).parents[1])

PROGRAM = """
import signal, sys, threading, warnings
import numpy as np
import mercer
from mercer import selection
from mercer.compat import sklearn as compat
from mercer.deadline import TimeLimitError
from mercer.kernels import Gaussian, Linear
from mercer.solvers import BandPath, Cholesky, Eigh
warnings.simplefilter("ignore")
n, how = int(sys.argv[1]), sys.argv[2]
rng = np.random.default_rng(0)
X, wide, G = rng.standard_normal((n, 5)), rng.standard_normal((n, n // 4)), Gaussian(1.0)
c, t = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, 1, 0), np.sin(X[:, 0])
few = np.where(np.arange(n) < 50, c, -1)
some = np.where(np.arange(n) < 50, t, np.nan)
gaps = np.where(rng.random((n // 2, 2)) < 0.2, np.nan, X[: n // 2, :2])
K = np.exp(-np.square(X[:, :1] - X[:, :1].T))
limit = {} if how == "interrupted" else {"time_limit": 0.5}
machine, given = CASE
machine.set_params(**{k: v for k, v in limit.items() if k in machine.get_params()})
if how == "interrupted":
    # the time of the process: other programs on the same cores change nothing
    signal.signal(signal.SIGPROF, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_PROF, 0.3)
print("begun", flush=True)
try:
    machine.fit(*given)
except (TimeLimitError, KeyboardInterrupt) as error:
    print(type(error).__name__, flush=True)
signal.setitimer(signal.ITIMER_PROF, 0)
assert threading.active_count() == 1, threading.enumerate()
"""

# estimators that call LAPACK, each on what it decomposes
CASES = {
    "ridge": "mercer.KernelRidge(0.1, kernel=G, solver=Cholesky()), (X, t)",
    "ridge, band": "mercer.KernelRidge('loo', kernel=G, solver=BandPath()), (X, t)",
    "ridge, features": "mercer.KernelRidge(1e-14), (wide, t)",
    "ridge, precomputed": "mercer.KernelRidge(0.1, kernel='precomputed'), (K, t)",
    "process": "mercer.GaussianProcess(G), (X, t)",
    "process, learnt": "mercer.GaussianProcess(1.0 * G, optimize=True), (X, t)",
    "process, classes": "mercer.GaussianProcessClassifier(1.0 * G, optimize=True), (X, c)",
    "tasks": "mercer.MultiTaskGaussianProcess(G), (X, X[:, :2])",
    "tasks, gaps": "mercer.MultiTaskGaussianProcess(G), (X[: n // 2], gaps)",
    "svc, precomputed": "mercer.SVC('precomputed'), (K, c)",
    "logistic": "mercer.LogisticRegression(G), (X, c)",
    "pca": "mercer.PCA(kernel=G, solver=Eigh()), (X,)",
    "pca, features": "mercer.PCA(), (wide,)",
    "cca": "mercer.CCA(kernel_x=G, kernel_y=G), (X[:, :2], X[:, 2:])",
    "cca, features": "mercer.CCA(), (wide[:, ::2], wide[:, 1::2])",
    "fisher": "mercer.FisherDiscriminant(G), (X, c)",
    "fisher, features": "mercer.FisherDiscriminant(), (wide, c)",
    "mds": "mercer.MDS(), (X,)",
    "probabilistic pca": "mercer.ProbabilisticPCA(2), (wide,)",
    "label propagation": "mercer.LabelPropagation(neighbors=None), (X, few)",
    "harmonic": "mercer.HarmonicRegressor(neighbors=None), (X, some)",
    "laplacian ridge": "mercer.LaplacianRidge(1.0, G), (X, some)",
    "laplacian svc": "mercer.LaplacianSVC(G), (X, few)",
    "spectral": "mercer.SpectralClustering(3, kernel=G), (X,)",
    "gaussian classifier": "mercer.GaussianClassifier(), (wide, c)",
    "ica": "mercer.ICA(), (wide[:, :100],)",
    "discriminant drop-in": "compat.LinearDiscriminantAnalysis(), (wide, c)",
}


def program(case, n, how):
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("CASE", CASES[case]), str(n), how],
        env=environment | {"PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGPROF"), reason="has no timers of processor time")
@pytest.mark.parametrize("how", ["limited", "interrupted"])
@pytest.mark.parametrize("case", CASES)
def test_programs_end(case, how):
    # a program that hangs is past the timeout; on an idle computer each takes two to four seconds
    found = program(case, 4000, how)
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("begun")


@pytest.mark.parametrize("name", ["eigh", "svd", "qr", "solve"])
def test_factorizations_start_no_thread(name, monkeypatch):
    def refuse(thread):
        raise AssertionError(f"{thread} would be left behind")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    A = np.random.default_rng(0).standard_normal((600, 600))
    A = A + A.T
    getattr(factorizations, name)(*((A, A[:, :2]) if name == "solve" else (A,)))
